package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFormerMasterIsNotBelieved: an answer is ignored if its command was sent to another master than the one known now.
func TestFormerMasterIsNotBelieved(t *testing.T) {
	t.Parallel()
	rdb := testkit.StartCluster(t, 2).Client()
	stop := make(chan struct{})
	defer close(stop)
	e := NewExecutor(rdb, Background{Now: keepalive.SystemClock, Recovered: func(call func()) { call() }}, stop)
	testkit.Eventually(t, 20*time.Second, "the masters to be known", func() bool { return e.Nodes.master("name") != nil })
	for name, n := range map[string]*node{
		"then": e.Nodes.newNode(), "now": e.Nodes.of("name"), "when none was known": e.Nodes.only,
	} {
		c := NewCommand(echoScript, []string{"name"}, "here", 1000)
		c.node, c.Done = n, func(*Command) {}
		e.sendBatch([]*Command{c})
		if name == "then" && (!errors.Is(c.Err, ErrNotAnswered) || c.Reply != nil) || name != "then" && c.Err != nil {
			t.Errorf("the master of %s answers %v, %v", name, c.Reply, c.Err)
		}
	}
}
