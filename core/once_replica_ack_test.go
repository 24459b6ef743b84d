package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOnceIsAcknowledged: with the option, each write waits for the replica.
func TestOnceIsAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long), core.WithReplicaAck(1, ample))
	once := locks.Once("name")
	for what, step := range map[string]func() error{
		"complete": func() error { return mustBegin(t, once).Complete(ctx, nil) },
		"release":  func() error { return mustBegin(t, once).Release(ctx) },
		"hold":     func() error { return mustBegin(t, once).Hold(ctx, "") },
		"declare":  func() error { return mustBegin(t, once).Declare(ctx, core.StateUnknown) },
	} {
		before := p.waits()
		if err := step(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if waited := p.waits() - before; waited < 2 {
			t.Errorf("%s: asked to wait %d times", what, waited)
		}
		before = p.waits()
		if forget(t, once); what != "release" && p.waits() == before {
			t.Error("Forget did not wait")
		}
		before = p.waits()
		if err := resolveNow(ctx, once, nil); err != nil || p.waits() == before {
			t.Errorf("Resolve did not wait: %v", err)
		}
		forget(t, once)
	}
	before := p.waits()
	if err := mustBegin(t, newClient(t, p.master.Client()).Once("other")).Complete(ctx, nil); err != nil {
		t.Error(err)
	}
	if p.waits() != before {
		t.Error("waited for replicas though nobody asked")
	}
}

// TestOnceIsNotAcknowledged: without the replica nothing begins, and what ends is said to be unconfirmed until it
// is back.
func TestOnceIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := startReplicated(t)
	rdb := p.master.Client()
	warmPool(t, rdb)
	locks := newClient(t, rdb, core.WithTTL(long))
	acked := func(name string) *core.Once { return locks.Once(name, core.WithReplicaAck(1, soon)) }
	attempts := map[string]*core.Attempt{}
	for _, name := range []string{"complete", "release", "hold", "declare"} {
		testkit.Eventually(t, within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.link.Hold(testkit.ToServer) // what the replica acknowledges
	_, err := acked("name").Begin(ctx)
	if wantNotReplicated(t, err, 0, 1); errors.Is(err, core.ErrInProgress) {
		t.Error(err)
	}
	wantNotReplicated(t, attempts["complete"].Complete(ctx, []byte("value")), 0, 1)
	wantNotReplicated(t, attempts["release"].Release(ctx), 0, 1)
	wantNotReplicated(t, attempts["hold"].Hold(ctx, ""), 0, 1)
	wantNotReplicated(t, attempts["declare"].Declare(ctx, core.StateUnknown), 0, 1)
	wantNotReplicated(t, forgetNow(ctx, acked("declare")), 0, 1)
	wantNotReplicated(t, resolveNow(ctx, acked("resolve"), nil), 0, 1)
	for name, state := range map[string]core.State{
		"complete": core.StateCompleted, "release": core.StateNone, "hold": core.StateUnknown, "declare": core.StateNone,
		"resolve": core.StateCompleted,
	} {
		wantStateOnly(t, locks.Once(name), state) // on the master
	}
	testkit.Eventually(t, within, "the begin to be taken back", func() bool {
		return mustPeek(t, locks.Once("name")).State == core.StateNone
	})
	p.link.Deliver()
	p.awaitReplica(t)
	var ran atomic.Int64
	testkit.Eventually(t, within, "a run", func() bool {
		_, err := acked("name").Do(ctx, answers(&ran, ""))
		return err == nil
	})
	if r := mustPeek(t, locks.Once("name")); ran.Load() != 1 || r.Attempt != 1 {
		t.Errorf("ran %d times, %+v", ran.Load(), r)
	}
}

// TestRepeatedEndIsNotAcknowledged: the reply to an end is lost with its connection. On the next one nothing was
// written so far; all the same, what the replica does not know of is not confirmed.
func TestRepeatedEndIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := startReplicated(t)
	loadOnce(t, p.master.Client())
	relay := p.master.Relay()
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	acked := func(name string) *core.Once { return locks.Once(name, core.WithReplicaAck(1, soon)) }
	ends := map[string]func(*core.Attempt) error{
		"complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		"release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "") },
		"forget":   func(*core.Attempt) error { return forgetNow(ctx, acked("forget")) },
		"resolve": func(*core.Attempt) error {
			abandon(t, p.master.Client(), "resolve")
			return resolveNow(ctx, acked("resolve"), nil)
		},
	}
	attempts := map[string]*core.Attempt{}
	for name := range ends {
		testkit.Eventually(t, within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.link.Hold(testkit.ToServer) // what the replica acknowledges
	for name, end := range ends {
		relay.LoseReplies(recordOf(name), 1, testkit.Closed)
		wantNotReplicated(t, end(attempts[name]), 0, 1)
	}
	if n := relay.LostReplies(); n != len(ends) {
		t.Errorf("%d replies lost", n)
	}
}
