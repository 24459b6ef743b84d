package inspector_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// begin begins an attempt.
func begin(t testing.TB, locks *core.Client, key string) *core.Attempt {
	t.Helper()
	attempt, err := locks.Once(key).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return attempt
}

// peek returns a record.
func peek(t testing.TB, locks *core.Client, key string) core.Record {
	t.Helper()
	record, err := locks.Once(key).Peek(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// TestRecordChangesBehindTheForm: between the form and its confirmation the record becomes another one. It is kept, and the
// answer has a form for what it is now.
func TestRecordChangesBehindTheForm(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(time.Minute))
	var audit audits
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	var running *core.Attempt
	before := map[string]func(key string){
		"held":    func(key string) { held(t, locks, key, time.Hour) },
		"running": func(key string) { running = begin(t, locks, key) },
	}
	forget := func(key string) {
		if err := locks.Once(key).ForgetRunning(t.Context(), peek(t, locks, key)); err != nil {
			t.Fatal(err)
		}
	}
	complete := func(key string) {
		var err error
		if record := peek(t, locks, key); record.State == core.StateRunning {
			err = running.Complete(t.Context(), []byte("receipt 7"))
		} else {
			err = locks.Once(key).Resolve(t.Context(), record, []byte("receipt 7"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	changes := map[string]func(key string){
		"completes":               complete,
		"runs again":              func(key string) { forget(key); begin(t, locks, key) },
		"is held again":           func(key string) { forget(key); held(t, locks, key, time.Hour) },
		"runs again, and is done": func(key string) { forget(key); running = begin(t, locks, key); complete(key) },
	}
	for _, action := range []string{"forget", "resolve"} {
		for was, prepare := range before {
			for then, change := range changes {
				key := was + " record " + then + " at " + action
				prepare(key)
				path := action + "?name=" + url.QueryEscape(key)
				form := s.form(path)
				change(key)
				now := peek(t, locks, key)
				body := s.send(http.StatusConflict, path, form, "confirm", key, "force", "1", "value", "by hand")
				contains(t, body, "It has changed since you saw it", `name="confirm"`)
				if named := strings.Contains(body, "Its key is <code>"+now.ProofKey+"</code>"); named != (action == "forget") {
					t.Errorf("%s: the page names the proof %q: %v", key, now.ProofKey, named)
				}
				if a := audit.last(t); a.Err == nil {
					t.Errorf("%s: audit %+v", key, a)
				}
				after := peek(t, locks, key)
				if after.State != now.State || after.Token != now.Token || string(after.Value) != string(now.Value) {
					t.Errorf("%s: %+v has become %+v", key, now, after)
				}
			}
		}
	}
}

// TestForgetRunning: the record of a run in progress is deleted if the form says so at the time of the act.
func TestForgetRunning(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(time.Minute))
	s := newSite(t, locks, inspector.WithActions(asAda))
	begin(t, locks, "pay:1")
	contains(t, s.get(http.StatusOK, "forget?name=pay:1"), `type="checkbox" name="force"`)
	contains(t, s.act(http.StatusConflict, "forget?name=pay:1", "pay:1"), "An attempt is running")
	if r := peek(t, locks, "pay:1"); r.State != core.StateRunning {
		t.Errorf("%+v", r)
	}
	s.act(http.StatusOK, "forget?name=pay:1", "pay:1", "force", "1")
	if r := peek(t, locks, "pay:1"); r.State != core.StateNone {
		t.Errorf("%+v", r)
	}
	held(t, locks, "pay:2", time.Hour)
	lacks(t, s.get(http.StatusOK, "forget?name=pay:2"), "checkbox")
}

// TestHolderChangesBehindTheForm: between the form and its confirmation another owner, or the same one, gets the lock. It keeps
// it, and the answer has a form for the present holders.
func TestHolderChangesBehindTheForm(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(time.Minute))
	s := newSite(t, locks, inspector.WithActions(asAda))
	for name, strategy := range map[string]core.Strategy{"mutex": locks.Mutex, "fair": locks.Fair, "gpu": locks.Limit(2)} {
		for path, opts := range map[string][]core.LockOption{
			"force-unlock?name=" + name:                     nil,
			"force-unlock-holder?name=" + name + "&owner=o": {core.WithOwner("o")},
		} {
			first := mustLock(t, strategy(name, opts...))
			form := s.form(path)
			if err := first.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := mustLock(t, strategy(name, opts...))
			body := s.send(http.StatusConflict, path, form, "confirm", name)
			contains(t, body, "It has changed since you saw it", fmtInt(second.Token()))
			if err := second.Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			form.Del("seen")
			contains(t, s.send(http.StatusBadRequest, path, form, "confirm", name), "what was seen")
			s.act(http.StatusOK, path, name)
			if err := second.Unlock(t.Context()); err == nil {
				t.Errorf("%s: the lock was not taken", path)
			}
		}
	}
}

// TestManyHolders: a lock with more holders than can be compared is not taken from all at once.
func TestManyHolders(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(time.Minute))
	s := newSite(t, locks, inspector.WithActions(asAda))
	for range 1001 {
		mustLock(t, locks.Read("name"))
	}
	contains(t, s.act(http.StatusConflict, "force-unlock?name=name", "name"), "too many holders")
	if info, err := locks.Inspect(t.Context(), "name"); err != nil || info.Shares != 1001 {
		t.Errorf("%d shares, error %v", info.Shares, err)
	}
}
