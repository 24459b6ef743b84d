package inspector_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestForceForm: before a lock is taken, the form shows from which process, since when, and what waits for it. The audit and the log
// have the owner and the token afterwards.
func TestForceForm(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holder := newClient(t, server.Client(), core.WithInstance("web-1:4711"))
	waiter := newClient(t, server.Client(), core.WithInstance("web-2:12"))
	log, text := logged()
	var audit audits
	locks := newClient(t, server.Client(), core.WithLogger(log))
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	lease := mustLock(t, holder.Fair("order:42"))
	wait(t, waiter.Fair("order:42"))
	testkit.Eventually(t, patience, "the holder's process and the waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "order:42")
		return err == nil && info.Places == 1 && info.Holders[0].Instance != ""
	})
	byHolder := "force-unlock-holder?" + url.Values{
		"name": {"order:42"}, "owner": {lease.Owner()}, "holder-token": {fmtInt(lease.Token())},
	}.Encode()
	for _, path := range []string{"force-unlock?name=order:42", byHolder} {
		body := s.get(http.StatusOK, path)
		contains(t, body, "web-1:4711", lease.Owner(), fmtInt(lease.Token()), "<b>1</b> queued", "<small>since ", " UTC</small>", "<time datetime=")
	}
	gone := strings.ReplaceAll(byHolder, fmtInt(lease.Token()), "7")
	contains(t, s.get(http.StatusOK, gone), "This holder holds the lock no more")
	lacks(t, s.get(http.StatusOK, gone), "web-1:4711")

	s.act(http.StatusOK, "force-unlock?name=order:42", "order:42")
	a := audit.last(t)
	if a.Owner != lease.Owner() || a.Token != lease.Token() || len(a.Holders) != 1 || a.Holders[0].Instance != "web-1:4711" {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "owner="+lease.Owner(), "token="+fmtInt(lease.Token()), "instance=web-1:4711")
}

// TestForcedOwnersAreSecret: an owner that WithOwner has named is in the audit, and not in the log.
func TestForcedOwnersAreSecret(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	log, text := logged()
	var audit audits
	locks := newClient(t, server.Client(), core.WithLogger(log))
	s := newSite(t, locks, inspector.WithActions(asAda), inspector.WithAudit(audit.record))
	mustLock(t, locks.Mutex("a"), core.WithOwner("password"))
	s.act(http.StatusOK, "force-unlock?name=a", "a")
	if a := audit.last(t); a.Owner != "password" || a.Token == 0 {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "an action was done", "token=")
	lacks(t, text.String(), "password")

	mustLock(t, locks.Semaphore("b", 2), core.WithOwner("one"))
	mustLock(t, locks.Semaphore("b", 2), core.WithOwner("two"))
	s.act(http.StatusOK, "force-unlock?name=b", "b")
	if a := audit.last(t); a.Owner != "" || a.Token != 0 || len(a.Holders) != 2 {
		t.Errorf("audit %+v", a)
	}
	contains(t, text.String(), "holders=2")
}

// TestEightCharacters confirm an action: the end of the name. The whole name does, too, and its beginning does not.
func TestEightCharacters(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for name, c := range map[string]struct{ asked, accepted, refused string }{
		"payment:customer-815:4711":  {"815:4711", "815:4711", "payment:"},
		"payment:customer-815:4712":  {"815:4712", "payment:customer-815:4712", "815:4711"},
		"gpu":                        {"gpu", "gpu", "gp"},
		"订单-1234567-ü":               {"234567-ü", "234567-ü", ""},
		"the end is with a  bcdefgh": {seal.NamesOf(locks).Digest("the end is with a  bcdefgh", false), seal.NamesOf(locks).Digest("the end is with a  bcdefgh", false), " bcdefgh"},
	} {
		mustLock(t, locks.Mutex(name))
		path := "force-unlock?name=" + url.QueryEscape(name)
		contains(t, s.get(http.StatusOK, path), c.asked+"</code> to confirm")
		contains(t, s.act(http.StatusBadRequest, path, c.refused), "type ")
		s.act(http.StatusOK, path, c.accepted)
	}
}

// TestUntypableJobNames: a job whose name cannot be typed is confirmed by a digest, like a lock.
func TestUntypableJobNames(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	s := newSite(t, locks, inspector.WithActions(asAda))
	for _, name := range []string{"line\nbreak", strings.Repeat("long", 40)} {
		addJob(t, locks, name, func(context.Context) error { return nil })
		path := "pause?name=" + url.QueryEscape(name)
		s.act(http.StatusBadRequest, path, "")
		s.act(http.StatusOK, path, seal.NamesOf(locks).Digest(name, false))
		if paused, err := cronlock.Job(locks, name).Paused(t.Context()); err != nil || !paused {
			t.Errorf("%q: paused %v, error %v", name, paused, err)
		}
	}
}

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }
