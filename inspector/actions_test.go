package inspector_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// audits collects what [inspector.WithAudit] gets.
type audits struct {
	mu  sync.Mutex
	all []inspector.Audit
}

func (a *audits) record(_ context.Context, one inspector.Audit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, one)
}

// last returns the only audit since the last call.
func (a *audits) last(t testing.TB) inspector.Audit {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) != 1 {
		t.Fatalf("%d audits, want 1: %+v", len(a.all), a.all)
	}
	one := a.all[0]
	a.all = nil
	return one
}

// TestForceUnlock: a lock is taken from its holder once the name is typed. The log and the audit say so, the log without the name.
func TestForceUnlock(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	log, text := logged()
	var audit audits
	holder := newClient(t, server.Client())
	locks := newClient(t, server.Client(), core.WithLogger(log))
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	mustLock(t, holder.Mutex("order:42"))
	contains(t, s.get(http.StatusOK, "lock?name=order:42"), "force-unlock?name=order%3A42", "Actions as ada")

	body := s.act(http.StatusBadRequest, "force-unlock?name=order:42", "order:43")
	contains(t, body, "type order:42 to confirm", `role="alert"`)
	if a := audit.last(t); !a.Refused || a.Who != "ada" || a.Err == nil {
		t.Errorf("audit %+v", a)
	}
	body = s.act(http.StatusOK, "force-unlock?name=order:42", "order:42") // after the redirect
	contains(t, body, "The lock was taken", ">free<")
	a := audit.last(t)
	if a.Refused || a.Err != nil || a.Action != inspector.ForceUnlock || a.Name != "order:42" || a.Who != "ada" || a.Remote == "" ||
		a.Digest != seal.NamesOf(locks).Digest("order:42", false) || a.Time.IsZero() {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "an action was done", "action=force-unlock", "who=ada", "digest="+a.Digest, "an action was refused")
	lacks(t, text.String(), "order:42")
	contains(t, s.act(http.StatusConflict, "force-unlock?name=order:42", "order:42"), "The lock is free already")
	if a := audit.last(t); a.Refused || a.Err == nil {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "an action has failed", `reason="The lock is free already"`, `reason="The typed name is wrong"`)
}

// TestForceUnlockHolder takes one of two permits, by the link on the page.
func TestForceUnlockHolder(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	one, two := newClient(t, server.Client()), newClient(t, server.Client())
	var audit audits
	s := newSite(t, newClient(t, server.Client()), inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	gone, stays := mustLock(t, one.Semaphore("gpu", 2)), mustLock(t, two.Semaphore("gpu", 2))
	path := "force-unlock-holder?" + url.Values{
		"name": {"gpu"}, "owner": {gone.Owner()}, "holder-token": {"1" + strings.Repeat("0", 3)},
	}.Encode()
	contains(t, s.act(http.StatusConflict, path, "gpu"), "holds the lock no more") // no holder has the token
	audit.last(t)
	var lock lockData
	s.data("lock?name=gpu", &lock)
	if len(lock.Holders) != 2 || lock.Holders[0].Limit != 2 {
		t.Fatalf("%+v", lock)
	}
	body := s.get(http.StatusOK, "lock?name=gpu")
	for link := range strings.SplitSeq(body, `href="./`) {
		path, _, _ = strings.Cut(link, `"`)
		if path = strings.ReplaceAll(path, "&amp;", "&"); strings.Contains(path, url.QueryEscape(gone.Owner())) {
			break
		}
	}
	s.act(http.StatusOK, path, "gpu")
	if a := audit.last(t); a.Owner != gone.Owner() || a.Token != gone.Token() || a.Err != nil {
		t.Errorf("audit %+v", a)
	}
	s.data("lock?name=gpu", &lock)
	if len(lock.Holders) != 1 || lock.Holders[0].Owner != stays.Owner() {
		t.Errorf("%+v", lock)
	}
}

// TestReadOnly: without WithActions, and for a request that it refuses, nothing is offered and nothing done.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	lease := mustLock(t, newClient(t, server.Client()).Mutex("name"))
	refusing := func(*http.Request) (string, error) { return "", errors.New("secret reason") }
	nameless := func(*http.Request) (string, error) { return "", nil } // a session without a user
	for what, opts := range map[string][]inspector.Option{
		"off": nil, "refused": {inspector.WithActions(refusing)}, "without a name": {inspector.WithActions(nameless)},
	} {
		var audit audits
		s := newSite(t, newClient(t, server.Client()), append(opts, inspector.WithAudit(audit.record))...)
		lacks(t, s.get(http.StatusOK, "lock?name=name"), "force-unlock", "Actions as")
		contains(t, s.get(http.StatusForbidden, "force-unlock?name=name"), "read-only")
		form := url.Values{"token": {"x"}, "confirm": {"name"}}
		resp, body := s.do(http.MethodPost, "force-unlock?name=name", form, "Cookie", "holdfast-inspector=x")
		if resp.StatusCode != http.StatusForbidden || strings.Contains(body, "secret") {
			t.Errorf("%s: status %d: %s", what, resp.StatusCode, body)
		}
		if a := audit.last(t); !a.Refused || a.Err == nil || a.Name != "name" || a.Who != "" {
			t.Errorf("%s: audit %+v", what, a)
		}
	}
	if lease.Context().Err() != nil {
		t.Error("the lock was taken")
	}
}

// TestRecords resolves one record with a value and forgets another.
func TestRecords(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for _, key := range []string{"pay:1", "pay:2"} {
		attempt, err := locks.Once(key, core.WithFailurePolicy(core.HoldFailures)).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := attempt.Hold(t.Context(), "gateway timed out"); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, s.get(http.StatusOK, "records"), "record?name=pay%3A1", "unknown")
	contains(t, s.get(http.StatusOK, "record?name=pay:1"), "gateway timed out", "resolve?name=pay%3A1", "forget?name=pay%3A1")
	s.act(http.StatusBadRequest, "resolve?name=pay:1", "pay:1", "keep", "a day")
	body := s.act(http.StatusOK, "resolve?name=pay:1", "pay:1", "value", "receipt 7", "keep", "48h")
	contains(t, body, "The record is completed", "9 B. Values are not shown")
	lacks(t, body, "receipt 7", "resolve?name")
	s.act(http.StatusConflict, "resolve?name=pay:1", "pay:1")
	if r, err := locks.Once("pay:1").Peek(t.Context()); err != nil || string(r.Value) != "receipt 7" || r.Retention.Hours() < 47 {
		t.Errorf("record %+v, error %v", r, err)
	}
	contains(t, s.act(http.StatusOK, "forget?name=pay:2", "pay:2"), "no record")
	if r, err := locks.Once("pay:2").Peek(t.Context()); err != nil || r.State != core.StateNone {
		t.Errorf("record %+v, error %v", r, err)
	}
	_, data := s.do(http.MethodGet, "record?name=pay:1&format=json", nil)
	contains(t, data, `"size": 9`)
	lacks(t, data, "receipt 7")
	shown := newSite(t, locks, inspector.WithValues())
	contains(t, shown.get(http.StatusOK, "record?name=pay:1"), "receipt 7")
}
