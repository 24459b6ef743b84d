package election_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// proclaimer sends proclamations as the script, with whatever arguments.
type proclaimer struct {
	t      *testing.T
	rdb    *redis.Client
	script *redis.Script
}

func newProclaimer(t *testing.T) proclaimer {
	return proclaimer{t, testkit.Start(t).Client(), coretest.LuaScript(t, "publish", "lock_kind", "compact", "proclaim")}
}

// want sends a proclamation and checks the reply, and the field afterwards.
func (p proclaimer) want(reply int64, field, id string, token int64, number int, value string) {
	p.t.Helper()
	ctx := context.Background()
	got, err := p.script.Run(ctx, p.rdb, []string{"lock:name"}, id, token, number, value, "channel", "PUBLISH").Int64()
	if err != nil || got != reply {
		p.t.Errorf("proclaim %q as number %d: %d, %v, want %d", value, number, got, err, reply)
	}
	if now := p.rdb.HGet(ctx, "lock:name", "leader_value").Val(); now != field {
		p.t.Errorf("after %q the field is %q, want %q", value, now, field)
	}
}

// TestProclaimTwice repeats proclamations: a repetition changes nothing, and a late one not the newer value.
func TestProclaimTwice(t *testing.T) {
	t.Parallel()
	p := newProclaimer(t)
	lease := coretest.MustLock(t, coretest.NewClient(t, p.rdb).Fair("name"))
	term := lease.Token()
	at := func(rest string) string { return fmt.Sprint(term, " ", rest) }
	p.want(1, at("1 a"), lease.Owner(), term, 1, "a")
	p.want(1, at("1 a"), lease.Owner(), term, 1, "a")
	p.want(1, at("3 c c"), lease.Owner(), term, 3, "c c")
	p.want(1, at("3 c c"), lease.Owner(), term, 2, "b")
	p.want(1, at("4 "), lease.Owner(), term, 4, "")
	coretest.AwaitRenewed(t, []*core.Lease{lease}, time.Second)
	coretest.Unlock(t, lease)
	coretest.AwaitTidy(t, p.rdb)
}

// TestProclaimOfOthers: only the hold that has the lock now, with its token, writes. Anything else writes nothing.
func TestProclaimOfOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newProclaimer(t)
	locks := coretest.NewClient(t, p.rdb)
	p.want(0, "", "nobody", 1, 1, "free")
	if n := p.rdb.Exists(ctx, "lock:name").Val(); n != 0 {
		t.Error("a proclamation made the key of a free lock")
	}
	for _, expanded := range []bool{false, true} {
		lease := coretest.MustLock(t, locks.Fair("name"))
		if expanded {
			coretest.Expand(t, locks, "name")
		}
		p.want(0, "", lease.Owner(), lease.Token()-1, 1, "of an earlier term")
		p.want(0, "", "other:1", lease.Token(), 1, "of another hold")
		coretest.Unlock(t, lease)
		p.want(0, "", lease.Owner(), lease.Token(), 1, "of a released lock")
	}
	for name, strategy := range coretest.Strategies(locks) {
		if name == "Fair" {
			continue
		}
		for _, expanded := range []bool{false, true} {
			lease := coretest.MustLock(t, strategy("name"))
			if expanded {
				coretest.Expand(t, locks, "name")
			}
			p.want(0, "", lease.Owner(), lease.Token(), 1, "of "+name)
			coretest.Unlock(t, lease)
		}
	}
}

// TestProclaimExpired: the exclusive hold has expired by the server's clock, and a share keeps the key.
func TestProclaimExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newProclaimer(t)
	locks := coretest.NewClient(t, p.rdb)
	lease := coretest.MustLock(t, locks.Fair("name"), core.WithFixedTTL(3*time.Second))
	share := coretest.MustLockWith(t, lease.Context(), locks.Read("name"), core.WithTTL(coretest.Long))
	term := lease.Token()
	p.want(1, fmt.Sprint(term, " 1 a"), lease.Owner(), term, 1, "a")
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	testkit.Eventually(t, coretest.Within, "the hold to expire", func() bool {
		return p.script.Run(ctx, p.rdb, []string{"lock:name"}, lease.Owner(), term, 2, "b", "channel", "PUBLISH").Val() == int64(0)
	})
	if _, err := locks.Election("name").Leader(ctx); err == nil {
		t.Error("a hold that has expired leads")
	}
	coretest.Unlock(t, share)
}

// TestProclaimOnAFullServer: a leader can be told of, because the lock expands first.
func TestProclaimOnAFullServer(t *testing.T) {
	t.Parallel()
	p := newProclaimer(t)
	lease := coretest.MustLock(t, coretest.NewClient(t, p.rdb).Fair("name"))
	coretest.FillUp(p.rdb)
	p.want(1, fmt.Sprint(lease.Token(), " 1 a"), lease.Owner(), lease.Token(), 1, "a")
	coretest.Unlock(t, lease)
}

// TestProclamationKeepsTheLockAsItIs: an elected leader is inspected, force-released and excludes all strategies like any holder.
func TestProclamationKeepsTheLockAsItIs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	lead := coretest.MustCampaign(t, locks.Election("name", core.WithValue("hold:x")))
	for name, strategy := range coretest.Strategies(locks) {
		if err := coretest.TryLock(strategy("name")); err == nil {
			t.Errorf("%s was granted beside a leader", name)
		}
	}
	if _, err := locks.Fair("name", core.WithOwner("leader_value")).TryLock(ctx); err == nil {
		t.Error("an owner may be called like the field")
	}
	info, err := locks.Inspect(ctx, "name")
	if err != nil || len(info.Holders) != 1 || info.Holders[0].Token != lead.Term() || info.Holders[0].Holds != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	if forced, err := locks.ForceUnlock(ctx, "name"); err != nil || !forced {
		t.Errorf("ForceUnlock: %t, %v", forced, err)
	}
	if marks := rdb.HLen(ctx, "holdfast:forced:{lock:name}").Val(); marks != 1 {
		t.Errorf("%d holds were forced", marks)
	}
	coretest.WantErr(t, lead.Resign(ctx), core.ErrNotHeld)
	coretest.Resign(t, coretest.MustCampaign(t, locks.Election("name")))
}
