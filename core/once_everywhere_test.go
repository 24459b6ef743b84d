package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// endEveryWay uses all there is of a Once of that name, with two clients.
func endEveryWay(t testing.TB, locks, other *core.Client, name string) {
	t.Helper()
	ctx := context.Background()
	once := locks.Once(name, core.WithTTL(3*time.Second), core.WithFingerprint([]byte("a")))
	follower := other.Once(name, core.WithWait(within))
	if err := mustBegin(t, once).Release(ctx); err != nil {
		t.Errorf("%s: release: %v", name, err)
	}
	a := mustBegin(t, once)
	until := a.ValidUntil()
	redistest.Eventually(t, within, "a renewal", func() bool {
		return a.ValidUntil().After(until.Add(500 * time.Millisecond))
	})
	if err := a.Declare(ctx, core.StateUnknown); err != nil {
		t.Errorf("%s: declare: %v", name, err)
	}
	done := make(chan error, 1)
	go func() {
		got, err := follower.Do(ctx, answers(nil, ""))
		if string(got.Value) != "value" || got.Attempt != 2 {
			err = errors.Join(err, fmt.Errorf("%+v", got))
		}
		done <- err
	}()
	_, err := other.Once(name).Begin(ctx)
	wantErr(t, err, core.ErrInProgress)
	_, err = other.Once(name, core.WithFingerprint([]byte("b"))).Begin(ctx)
	wantErr(t, err, core.ErrFingerprintMismatch)
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Errorf("%s: complete: %v", name, err)
	}
	if err := receive(t, done); err != nil {
		t.Errorf("%s: waiter: %v", name, err)
	}
	forget(t, follower)
	// Two of a fixed lease: the one is followed, the other held.
	fixed := locks.Once(name, core.WithFixedTTL(500*time.Millisecond))
	zombie := mustBegin(t, fixed)
	b, err := follower.Begin(ctx)
	if err != nil {
		t.Fatalf("%s: takeover: %v", name, err)
	}
	if b.Number() != 2 || b.Token() <= zombie.Token() {
		t.Errorf("%s: attempt %d, token %d after %d", name, b.Number(), b.Token(), zombie.Token())
	}
	wantErr(t, zombie.Complete(ctx, nil), core.ErrStale)
	if err := b.Hold(ctx, "reason"); err != nil {
		t.Errorf("%s: hold: %v", name, err)
	}
	wantState(t, once, core.StateUnknown, 2)
	if err := follower.Resolve(ctx, []byte("found out")); err != nil {
		t.Errorf("%s: resolve: %v", name, err)
	}
	if r := wantState(t, once, core.StateCompleted, 2); string(r.Value) != "found out" {
		t.Errorf("%s: %+v", name, r)
	}
	wantErr(t, once.Resolve(ctx, nil), core.ErrCompleted)
}

// TestOnceInCluster uses Once on names all over a Cluster, among them such with a hash tag.
func TestOnceInCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	a, b := newClient(t, cluster.Client()), newClient(t, cluster.Client())
	for i := range 8 {
		name := fmt.Sprint("name", i)
		if i%4 == 0 {
			name = fmt.Sprintf("{tag%d}:name", i)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endEveryWay(t, a, b, name)
		})
	}
}

// TestKeysOfARecord: everything about it has the hash tag of its name, hence one slot.
func TestKeysOfARecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, tag := range map[string]string{"plain": "lock:plain", "{tag}:x": "tag"} {
		rdb := redistest.Start(t).Client()
		once := newClient(t, rdb).Once(name)
		if err := mustBegin(t, once).Complete(ctx, nil); err != nil {
			t.Error(err)
		}
		forget(t, once)
		if err := once.Resolve(ctx, nil); err != nil {
			t.Error(err)
		}
		forget(t, once)
		mustBegin(t, once)
		keys := rdb.Keys(ctx, "*").Val()
		if len(keys) != 6 {
			t.Errorf("%q: keys %q, want the record, the token, a Complete, a Resolve and two Forgets", name, keys)
		}
		for _, key := range keys {
			if got := hashTag(key); got != tag {
				t.Errorf("%q: key %q hashes by %q, not %q", name, key, got, tag)
			}
		}
		wantExpiries(t, rdb)
	}
}

// TestOnceIsAcknowledged: with the option, each write waits for the replica.
func TestOnceIsAcknowledged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long), core.WithReplicaAck(1, pipelineWithWait))
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
		if err := once.Resolve(ctx, nil); err != nil || p.waits() == before {
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
		redistest.Eventually(t, within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.link.Hold(redistest.ToServer) // what the replica acknowledges
	_, err := acked("name").Begin(ctx)
	if wantNotReplicated(t, err, 0, 1); errors.Is(err, core.ErrInProgress) {
		t.Error(err)
	}
	wantNotReplicated(t, attempts["complete"].Complete(ctx, []byte("value")), 0, 1)
	wantNotReplicated(t, attempts["release"].Release(ctx), 0, 1)
	wantNotReplicated(t, attempts["hold"].Hold(ctx, ""), 0, 1)
	wantNotReplicated(t, attempts["declare"].Declare(ctx, core.StateUnknown), 0, 1)
	wantNotReplicated(t, acked("declare").Forget(ctx), 0, 1)
	wantNotReplicated(t, acked("resolve").Resolve(ctx, nil), 0, 1)
	for name, state := range map[string]core.State{
		"complete": core.StateCompleted, "release": core.StateNone, "hold": core.StateUnknown, "declare": core.StateNone,
		"resolve": core.StateCompleted,
	} {
		wantStateOnly(t, locks.Once(name), state) // on the master
	}
	redistest.Eventually(t, within, "the begin to be taken back", func() bool {
		return mustPeek(t, locks.Once("name")).State == core.StateNone
	})
	p.link.Deliver()
	p.awaitReplica(t)
	var ran atomic.Int64
	redistest.Eventually(t, within, "a run", func() bool {
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
		"forget":   func(*core.Attempt) error { return acked("forget").Forget(ctx) },
		"resolve": func(*core.Attempt) error {
			abandon(t, p.master.Client(), "resolve")
			return acked("resolve").Resolve(ctx, nil)
		},
	}
	attempts := map[string]*core.Attempt{}
	for name := range ends {
		redistest.Eventually(t, within, "an attempt", func() bool {
			a, err := acked(name).Begin(ctx)
			attempts[name] = a
			return err == nil
		})
	}
	p.link.Hold(redistest.ToServer) // what the replica acknowledges
	for name, end := range ends {
		relay.LoseReplies(recordOf(name), 1, redistest.Closed)
		wantNotReplicated(t, end(attempts[name]), 0, 1)
	}
	if n := relay.LostReplies(); n != len(ends) {
		t.Errorf("%d replies lost", n)
	}
}

func wantStateOnly(t testing.TB, o *core.Once, state core.State) {
	t.Helper()
	if r := mustPeek(t, o); r.State != state {
		t.Errorf("%s: %+v, want %q", o.Key(), r, state)
	}
}
