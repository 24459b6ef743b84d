package lockconformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var retryTests = map[string]func(*testing.T, Subject){
	"AcquireReplyLost":        acquireReplyLost,
	"ReentryReplyLost":        reentryReplyLost,
	"RenewReplyLost":          renewReplyLost,
	"ReleaseReplyLost":        releaseReplyLost,
	"ReleaseReplyLostInCrowd": releaseReplyLostInCrowd,
	"ScriptsForgotten":        scriptsForgotten,
}

// eachLoss runs a test with connections that go silent after the request, and with ones that are cut.
func eachLoss(t *testing.T, test func(*testing.T, testkit.LossMode)) {
	for name, how := range map[string]testkit.LossMode{"Silent": testkit.Silent, "Closed": testkit.Closed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, how)
		})
	}
}

// lose lets the replies to the process's next request about name be lost, after it was executed.
func (p *process) lose(name string, how testkit.LossMode) {
	for _, r := range p.relays {
		r.LoseReplies(p.w.key(name), 1, how)
	}
}

// wantLostReplies checks that the fault was met.
func (p *process) wantLostReplies() {
	p.w.t.Helper()
	if !p.lostReplies() {
		p.w.t.Error("no reply was lost: the test has tested nothing")
	}
}

func (p *process) lostReplies() bool {
	return p.everywhere(func(r *testkit.Relay) bool { return r.LostReplies() > 0 })
}

// known locks and unlocks another name, so that the servers know the scripts.
func (p *process) known() {
	p.w.t.Helper()
	lease := p.w.must(p.lock("warm").Lock(context.Background()))
	if err := lease.Extend(context.Background(), long); err != nil {
		p.w.t.Errorf("extend: %v", err)
	}
	p.w.unlock(lease)
}

func acquireReplyLost(t *testing.T, s Subject) {
	eachLoss(t, func(t *testing.T, how testkit.LossMode) {
		w := newWorld(t, s)
		p := w.relayed(core.WithTTL(long))
		p.known()
		p.lose("name", how)
		lease := w.must(p.lock("name").TryLock(context.Background()))
		p.wantLostReplies()
		w.held("name")
		w.unlock(lease)
		w.free("name") // which it is not if the hold was counted twice
	})
}

func reentryReplyLost(t *testing.T, s Subject) {
	eachLoss(t, func(t *testing.T, how testkit.LossMode) {
		w := newWorld(t, s)
		p := w.relayed(core.WithTTL(long))
		p.known()
		outer := w.must(p.lock("name").Lock(context.Background()))
		p.lose("name", how)
		inner := w.must(p.lock("name").Lock(outer.Context()))
		p.wantLostReplies()
		if inner.Token() != outer.Token() {
			t.Errorf("inner token %d, outer %d", inner.Token(), outer.Token())
		}
		w.unlock(inner)
		w.held("name") // which it is not if the inner hold was released twice
		w.unlock(outer)
		w.free("name")
	})
}

func renewReplyLost(t *testing.T, s Subject) {
	eachLoss(t, func(t *testing.T, how testkit.LossMode) {
		w := newWorld(t, s)
		var renewed countdown
		p := w.relayed(core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) {
			if r.Err == nil {
				renewed.done()
			}
		}}))
		p.known()
		lease := w.must(p.lock("name").Lock(context.Background(), core.WithTTL(6*time.Second)))
		p.lose("name", how)
		renewed.expect(2 * p.pair.Lock.members())
		wait(t, renewed.zero(), "two renewals after the lost one")
		p.wantLostReplies()
		if err := lease.Context().Err(); err != nil {
			t.Fatalf("the lease ended: %v", context.Cause(lease.Context()))
		}
		w.held("name")
		w.unlock(lease)
		w.free("name")
	})
}

func releaseReplyLost(t *testing.T, s Subject) {
	eachLoss(t, func(t *testing.T, how testkit.LossMode) {
		w := newWorld(t, s)
		p := w.relayed(core.WithTTL(long))
		p.known()
		outer := w.must(p.lock("name").Lock(context.Background()))
		inner := w.must(p.lock("name").Lock(outer.Context()))
		p.lose("name", how)
		w.unlock(inner)
		p.wantLostReplies()
		w.held("name")
		p.lose("name", how)
		w.unlock(outer)
		w.free("name")
	})
}

// releaseReplyLostInCrowd lets another process take the lock before the release is repeated: the repetition must
// neither free the other's lock nor say that the lock was not held.
func releaseReplyLostInCrowd(t *testing.T, s Subject) {
	eachLoss(t, func(t *testing.T, how testkit.LossMode) {
		w := newWorld(t, s)
		ctx := context.Background()
		p := w.relayed(core.WithTTL(long))
		p.known()
		lease := w.must(p.lock("name").Lock(ctx))
		waiting := w.process().lineUp(ctx, "name", core.WithTTL(long))
		p.lose("name", how)
		w.unlock(lease)
		p.wantLostReplies()
		next := receive(t, waiting).check(t)
		w.heldByRival("name")
		w.unlock(next)
		w.free("name")
	})
}

// scriptsForgotten empties the script cache before every step.
func scriptsForgotten(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	ctx := context.Background()
	forget := func() {
		w.each(func(server *testkit.Server) {
			if err := server.Client().ScriptFlush(ctx).Err(); err != nil {
				t.Errorf("script flush: %v", err)
			}
		})
	}
	var renewed countdown
	p := w.process(core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) {
		if r.Err != nil {
			t.Errorf("renewal: %v", r.Err)
		}
		renewed.done()
	}}))
	const names = 20        // enough that renewals share a pipeline
	ttl := 12 * time.Second // enough for a busy machine
	if s.Deployment != nil || s.Servers > 1 {
		ttl = 20 * time.Second // where several servers learn their scripts again and again
	}
	var leases []*core.Lease
	for i := range names {
		forget()
		leases = append(leases, w.must(p.lock(string(rune('a'+i))).Lock(ctx, core.WithTTL(ttl))))
	}
	renewed.expect(names * p.pair.Lock.members())
	forget()
	wait(t, renewed.zero(), "a round of renewals")
	for _, l := range leases {
		forget()
		w.unlock(l)
	}
	w.free("a")
}
