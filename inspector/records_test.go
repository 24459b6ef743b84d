package inspector_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRecordsByState: an operator lists the records whose outcome is unknown, among many that are completed.
func TestRecordsByState(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks)
	for i := range 400 {
		if _, err := locks.Once(fmt.Sprint("done:", i)).Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	held(t, locks, "payment:7", time.Hour)
	if _, err := locks.Once("export").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{"unknown": "payment:7", "running": "export"} {
		var keys []string
		for cursor, parts := "", 0; parts == 0 || cursor != ""; parts++ {
			var list struct {
				Next, State string
				Records     []struct{ Key, State string }
			}
			s.data("records?state="+state+"&cursor="+url.QueryEscape(cursor), &list)
			for _, r := range list.Records {
				keys = append(keys, r.Key)
			}
			if cursor = list.Next; list.State != state {
				t.Errorf("state %q, want %q", list.State, state)
			}
		}
		if len(keys) != 1 || keys[0] != want {
			t.Errorf("%s: %q, want %q", state, keys, want)
		}
		contains(t, s.get(http.StatusOK, "records?limit=1000&state="+state), "record?name="+url.QueryEscape(want), "1 record in all",
			`<option value="`+state+`" selected>`)
		contains(t, awaitEvent(t, s.watch("records?limit=1000&state="+state), "live: "), "record?name="+url.QueryEscape(want))
	}
	contains(t, s.get(http.StatusOK, "records?limit=1000&state=abandoned"), "There is no record in the state abandoned")
	s.get(http.StatusBadRequest, "records?state=odd")
}

// TestRecordOfProcess: a record shows which process ran it, and for which route, job or task type; so does the form of an action.
func TestRecordOfProcess(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	runner := newClient(t, server.Client(), core.WithInstance("web-1:4711"))
	s := newSite(t, newClient(t, server.Client()), inspector.WithActions(asAda))
	once := runner.Once("payment:7", core.WithLabel("POST /payments/<id>"), core.WithFailurePolicy(core.HoldFailures))
	attempt, err := once.Begin(t.Context())
	if err == nil {
		err = attempt.Hold(t.Context(), "gateway timed out")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"records", "record?name=payment:7", "resolve?name=payment:7"} {
		contains(t, s.get(http.StatusOK, path), "web-1:4711", "POST /payments/&lt;id&gt;")
	}
	var record struct{ Instance, Label string }
	if s.data("record?name=payment:7", &record); record.Instance != "web-1:4711" || record.Label != "POST /payments/<id>" {
		t.Errorf("%+v", record)
	}
}
