package transport

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

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
		c.node = n
		e.sendBatch([]*Command{c})
		if name == "then" && (!errors.Is(c.Err, ErrNotAnswered) || c.Reply != nil) || name != "then" && c.Err != nil {
			t.Errorf("the master of %s answers %v, %v", name, c.Reply, c.Err)
		}
	}
}

// TestFormerMasterIsDropped: after a query for the slots, masters that have left have no node. Commands that are queued there are sent.
func TestFormerMasterIsDropped(t *testing.T) {
	t.Parallel()
	e := NewExecutor(testkit.StartCluster(t, 2).Client(), Background{Now: keepalive.SystemClock, Recovered: func(call func()) { call() }}, nil)
	testkit.Eventually(t, 20*time.Second, "the masters to be known", func() bool { return e.Nodes.master("name") != nil })
	present, former, done := e.Nodes.of("name"), e.Nodes.newNode(), make(chan struct{})
	e.Nodes.byAddr.Store("left:6379", former)
	c := NewCommand(echoScript, []string{"name"}, "here", 1000)
	c.node, c.Done = former, func(*Command) { close(done) }
	former.commands = newBatchQueue(1, e.sendBatch, e.endWait)
	former.commands.tryReserve()
	former.commands.submit(c)
	e.Nodes.refreshSlots()
	if known := maps.Collect(e.Nodes.byAddr.Range); len(known) != 1 || e.Nodes.of("name") != present {
		t.Errorf("nodes: %v", known)
	}
	former.commands.unreserve()
	if <-done; c.keys.written == 0 || !errors.Is(c.Err, ErrNotAnswered) {
		t.Errorf("the queued command was written %d times, error %v", c.keys.written, c.Err)
	}
}

// TestOnlyStalledCommandsRefresh: the slots of a Cluster are read again because of a command without an answer after StallTimeout, and
// not because a beat finds one in flight.
func TestOnlyStalledCommandsRefresh(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]bool{StallTimeout - 1: false, StallTimeout + waitBeat: true} {
		synctest.Test(t, func(t *testing.T) {
			e := NewExecutor(nil, Background{}, nil)
			e.Nodes.cluster = new(redis.ClusterClient)
			e.Nodes.Close(0) // so nothing is sent
			c := &Command{answered: make(chan bool, 2), node: e.Nodes.only, waitUntil: AnswerTimeout}
			newBatchQueue(1, func([]*Command) { time.Sleep(takes) }, e.endWait).submit(c)
			<-c.answered
			time.Sleep(time.Second)
			synctest.Wait()
			if refreshed := !e.Nodes.refresh.at.IsZero(); refreshed != want {
				t.Errorf("an answer after %v: the slots were read again: %v", takes, refreshed)
			}
		})
	}
}
