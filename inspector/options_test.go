package inspector_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestArguments: what cannot work is refused at once, by name.
func TestArguments(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	if _, err := inspector.New(nil); err == nil || !strings.Contains(err.Error(), "client is nil") {
		t.Errorf("error %v", err)
	}
	for want, opt := range map[string]inspector.Option{
		"WithActions":           inspector.WithActions(nil),
		"WithAudit":             inspector.WithAudit(nil),
		"WithCron":              inspector.WithCron(nil),
		"no host is named":      inspector.WithHosts(),
		`WithHosts: "a:80"`:     inspector.WithHosts("localhost", "a:80"),
		`WithHosts: ""`:         inspector.WithHosts(""),
		"WithViewers(-1)":       inspector.WithViewers(-1),
		"WithViewers(10001)":    inspector.WithViewers(10_001),
		"an option is nil":      nil,
		"holdfast: inspector: ": inspector.WithViewers(-2),
	} {
		if _, err := inspector.New(locks, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestOnePlace is enough for a page that only reads. With actions it would be an operator's, and nobody else's page would be kept up to date.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	newSite(t, locks, inspector.WithViewers(1)).watch("")
	actions := inspector.WithActions(func(*http.Request) (string, error) { return "ada", nil })
	for _, opts := range [][]inspector.Option{{actions, inspector.WithViewers(1)}, {inspector.WithViewers(1), actions}} {
		if _, err := inspector.New(locks, opts...); err == nil || !strings.Contains(err.Error(), "set 2 or more, or 0") {
			t.Errorf("error %v", err)
		}
	}
	for _, most := range []int{0, 2} {
		newSite(t, locks, inspector.WithViewers(most), actions)
	}
}

// TestProcess: what this process holds and waits for.
func TestProcess(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	s := newSite(t, locks, inspector.WithViewers(0))
	mustLock(t, newClient(t, server.Client()).Fair("queued"))
	mustLock(t, locks.Mutex("held"))
	if _, err := locks.Once("begun").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, locks.Fair("queued"))
	testkit.Eventually(t, patience, "the wait", func() bool { return len(locks.Waiting()) == 1 })
	body := s.get(http.StatusOK, "process")
	contains(t, body, "lock?name=held", "record?name=begun", "lock?name=queued", "1 in Redis", `<span class="count">2</span>`)
	lacks(t, body, "script.js") // no viewer gets updates
}
