package inspector_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRecordIsResolvedAnewBehindTheForm: between the form and its confirmation, a record that was resolved by hand is forgotten and
// resolved by hand again. The form does not delete the second record.
func TestRecordIsResolvedAnewBehindTheForm(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(time.Minute))
	s := newSite(t, locks, inspector.WithActions(asAda))
	once := locks.Once("pay:1")
	resolve := func(value string) {
		t.Helper()
		if err := once.Resolve(t.Context(), core.Record{}, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	resolve("receipt 1")
	form := s.form("forget?name=pay:1")
	if err := once.Forget(t.Context(), peek(t, locks, "pay:1")); err != nil {
		t.Fatal(err)
	}
	resolve("receipt 2")
	contains(t, s.send(http.StatusConflict, "forget?name=pay:1", form, "confirm", "pay:1"), "It has changed since you saw it")
	if r := peek(t, locks, "pay:1"); string(r.Value) != "receipt 2" {
		t.Errorf("%+v", r)
	}
	s.act(http.StatusOK, "forget?name=pay:1", "pay:1")
	if r := peek(t, locks, "pay:1"); r.State != core.StateNone {
		t.Errorf("%+v", r)
	}
}
