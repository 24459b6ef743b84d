package inspector_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// held leaves a record of unknown outcome.
func held(t testing.TB, locks *core.Client, key string, retention time.Duration) {
	t.Helper()
	attempt, err := locks.Once(key, core.WithRetention(retention), core.WithFailurePolicy(core.HoldFailures)).Begin(t.Context())
	if err == nil {
		err = attempt.Hold(t.Context(), "gateway timed out")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestResolveKeepsRetention: a record is never kept for a shorter time than without Resolve, whatever the form says.
func TestResolveKeepsRetention(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for key, c := range map[string]struct {
		before              time.Duration
		keep, prefilled     string
		least, most, status int // hours
	}{
		"as prefilled": {720 * time.Hour, "720h", "720h", 719, 720, 200},
		"empty":        {720 * time.Hour, "", "720h", 719, 720, 200},
		"longer":       {720 * time.Hour, "1000h", "720h", 999, 1000, 200},
		"shorter":      {720 * time.Hour, "24h", "720h", 719, 720, 409},
		"short before": {time.Hour, "", "24h", 23, 24, 200},
		"typed":        {time.Hour, "2h", "24h", 1, 2, 200},
	} {
		held(t, locks, key, c.before)
		path := "resolve?name=" + url.QueryEscape(key)
		contains(t, s.get(http.StatusOK, path), `name="keep" value="`+c.prefilled+`"`)
		body := s.act(c.status, path, key, "keep", c.keep)
		if c.status == http.StatusConflict {
			contains(t, body, "kept for 720h without Resolve")
		}
		r, err := locks.Once(key).Peek(t.Context())
		if err != nil || r.Retention < time.Duration(c.least)*time.Hour || r.Retention > time.Duration(c.most)*time.Hour {
			t.Errorf("%s: kept for %v, error %v, want %d to %d h", key, r.Retention, err, c.least, c.most)
		}
		if (r.State == core.StateCompleted) != (c.status == http.StatusOK) {
			t.Errorf("%s: state %q", key, r.State)
		}
	}
}

// TestResultIsAddedLater: a completed record without a result gets one. One that has a result, or that is to get none, stays.
func TestResultIsAddedLater(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	if err := locks.Once("pay:1").Resolve(t.Context(), core.Record{}, nil); err != nil {
		t.Fatal(err)
	}
	contains(t, s.get(http.StatusOK, "record?name=pay:1"), "resolve?name=pay%3A1", "Add its result")
	contains(t, s.get(http.StatusOK, "resolve?name=pay:1"), "can only add the result")
	contains(t, s.act(http.StatusConflict, "resolve?name=pay:1", "pay:1"), "completed already")
	lacks(t, s.act(http.StatusOK, "resolve?name=pay:1", "pay:1", "value", "receipt 7"), "Add its result")
	if r, err := locks.Once("pay:1").Peek(t.Context()); err != nil || string(r.Value) != "receipt 7" {
		t.Errorf("record %+v, error %v", r, err)
	}
	contains(t, s.get(http.StatusOK, "resolve?name=pay:1"), "which Resolve does not change")
	contains(t, s.act(http.StatusConflict, "resolve?name=pay:1", "pay:1", "value", "receipt 8"), "completed already")
}

// TestRecordsThatAreNotThere: nothing is resolved or forgotten where no record is, and nothing is said to be done.
func TestRecordsThatAreNotThere(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	var audit audits
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	held(t, locks, "there", time.Hour)
	token := s.token("forget?name=there")
	for _, action := range []string{"resolve", "forget"} {
		contains(t, s.get(http.StatusNotFound, action+"?name=none"), "There is no record of this key")
		resp, body := s.do(http.MethodPost, action+"?name=none", url.Values{"token": {token}, "confirm": {"none"}})
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", action, resp.StatusCode, body)
		}
		if a := audit.last(t); a.Err == nil {
			t.Errorf("%s: audit %+v", action, a)
		}
	}
	if r, err := locks.Once("none").Peek(t.Context()); err != nil || r.State != core.StateNone {
		t.Errorf("record %+v, error %v", r, err)
	}
}

// TestForgetWarnsOfRunningAttempt: the form says that a second run may begin beside the one that is running.
func TestForgetWarnsOfRunningAttempt(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	if _, err := locks.Once("running").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	held(t, locks, "unknown", time.Hour)
	contains(t, s.get(http.StatusOK, "forget?name=running"), "An attempt is running", "a second run may begin")
	lacks(t, s.get(http.StatusOK, "forget?name=unknown"), "An attempt is running")
	contains(t, s.get(http.StatusOK, "resolve?name=running"), "refused until it has ended")
	contains(t, s.act(http.StatusConflict, "resolve?name=running", "running"), "An attempt is running")
}
