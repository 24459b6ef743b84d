package core

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestFormerMasterIsNotBelieved: the answer to a command that was sent to another master than is known now counts for
// nothing.
func TestFormerMasterIsNotBelieved(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t, 2).Client()
	stop := make(chan struct{})
	defer close(stop)
	e := newExecutor(rdb, clock.System, stop)
	redistest.Eventually(t, 20*time.Second, "the masters to be known", func() bool { return e.nodes.master("name") != nil })
	for name, way := range map[string]*node{
		"then": e.nodes.newNode(), "now": e.nodes.of("name"), "when none was known": e.nodes.only,
	} {
		c := newCommand(deploymentIDScript, []string{"name"}, "here", 1000)
		c.node, c.done = way, func(*command) {}
		e.sendBatch([]*command{c})
		if name == "then" && (!errors.Is(c.err, errNotAnswered) || c.reply != nil) || name != "then" && c.err != nil {
			t.Errorf("the master of %s answers %v, %v", name, c.reply, c.err)
		}
	}
}
