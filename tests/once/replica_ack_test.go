package once_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOnceIsAcknowledged: with the option, each write waits for the replica.
func TestOnceIsAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Ample))
	once := locks.Once("name")
	for what, step := range map[string]func() error{
		"complete": func() error { return coretest.MustBegin(t, once).Complete(ctx, nil) },
		"release":  func() error { return coretest.MustBegin(t, once).Release(ctx) },
		"hold":     func() error { return coretest.MustBegin(t, once).Hold(ctx, "") },
		"declare":  func() error { return coretest.MustBegin(t, once).Declare(ctx, core.StateUnknown) },
	} {
		before := p.Waits()
		if err := step(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if waited := p.Waits() - before; waited < 2 {
			t.Errorf("%s: asked to wait %d times", what, waited)
		}
		before = p.Waits()
		if coretest.Forget(t, once); what != "release" && p.Waits() == before {
			t.Error("Forget did not wait")
		}
		before = p.Waits()
		if err := coretest.ResolveNow(ctx, once, nil); err != nil || p.Waits() == before {
			t.Errorf("Resolve did not wait: %v", err)
		}
		coretest.Forget(t, once)
	}
	before := p.Waits()
	if err := coretest.MustBegin(t, coretest.NewClient(t, p.Master.Client()).Once("other")).Complete(ctx, nil); err != nil {
		t.Error(err)
	}
	if p.Waits() != before {
		t.Error("waited for replicas though nobody asked")
	}
}

// TestOnceIsNotAcknowledged: without the replica nothing begins, and what ends is said to be unconfirmed until it
// is back.
func TestOnceIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := coretest.StartReplicated(t)
	rdb := p.Master.Client()
	coretest.WarmPool(t, rdb)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	acked := func(name string) *core.Once { return locks.Once(name, core.WithReplicaAck(1, coretest.Soon)) }
	attempts := map[string]*core.Attempt{}
	for _, name := range []string{"complete", "release", "hold", "declare"} {
		testkit.Eventually(t, coretest.Within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.Link.Hold(testkit.ToServer) // what the replica acknowledges
	_, err := acked("name").Begin(ctx)
	if coretest.WantNotReplicated(t, err, 0, 1); errors.Is(err, core.ErrInProgress) {
		t.Error(err)
	}
	coretest.WantNotReplicated(t, attempts["complete"].Complete(ctx, []byte("value")), 0, 1)
	coretest.WantNotReplicated(t, attempts["release"].Release(ctx), 0, 1)
	coretest.WantNotReplicated(t, attempts["hold"].Hold(ctx, ""), 0, 1)
	coretest.WantNotReplicated(t, attempts["declare"].Declare(ctx, core.StateUnknown), 0, 1)
	coretest.WantNotReplicated(t, coretest.ForgetNow(ctx, acked("declare")), 0, 1)
	coretest.WantNotReplicated(t, coretest.ResolveNow(ctx, acked("resolve"), nil), 0, 1)
	for name, state := range map[string]core.State{
		"complete": core.StateCompleted, "release": core.StateNone, "hold": core.StateUnknown, "declare": core.StateNone,
		"resolve": core.StateCompleted,
	} {
		wantStateOnly(t, locks.Once(name), state) // on the master
	}
	testkit.Eventually(t, coretest.Within, "the begin to be taken back", func() bool {
		return coretest.MustPeek(t, locks.Once("name")).State == core.StateNone
	})
	p.Link.Deliver()
	p.AwaitReplica(t)
	var ran atomic.Int64
	testkit.Eventually(t, coretest.Within, "a run", func() bool {
		_, err := acked("name").Do(ctx, coretest.Answers(&ran, ""))
		return err == nil
	})
	if r := coretest.MustPeek(t, locks.Once("name")); ran.Load() != 1 || r.Attempt != 1 {
		t.Errorf("ran %d times, %+v", ran.Load(), r)
	}
}

// TestRepeatedEndIsNotAcknowledged: the reply to an end is lost with its connection. On the next one nothing was
// written so far; all the same, what the replica does not know of is not confirmed.
func TestRepeatedEndIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := coretest.StartReplicated(t)
	coretest.LoadOnce(t, p.Master.Client())
	relay := p.Master.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	acked := func(name string) *core.Once { return locks.Once(name, core.WithReplicaAck(1, coretest.Soon)) }
	ends := map[string]func(*core.Attempt) error{
		"complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		"release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "") },
		"forget":   func(*core.Attempt) error { return coretest.ForgetNow(ctx, acked("forget")) },
		"resolve": func(*core.Attempt) error {
			coretest.Abandon(t, p.Master.Client(), "resolve")
			return coretest.ResolveNow(ctx, acked("resolve"), nil)
		},
	}
	attempts := map[string]*core.Attempt{}
	for name := range ends {
		testkit.Eventually(t, coretest.Within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.Link.Hold(testkit.ToServer) // what the replica acknowledges
	for name, end := range ends {
		relay.LoseReplies(coretest.RecordOf(name), 1, testkit.Closed)
		coretest.WantNotReplicated(t, end(attempts[name]), 0, 1)
	}
	if n := relay.LostReplies(); n != len(ends) {
		t.Errorf("%d replies lost", n)
	}
}
