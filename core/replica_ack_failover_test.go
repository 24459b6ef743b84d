package core_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// grabUntilDead lets goroutines take one name after the other, until Redis is gone, and kills it after so many
// grants. It returns the tokens of all leases, by name.
func grabUntilDead(t *testing.T, p *replicated, grants int, opts ...core.LockOption) map[string]int64 {
	t.Helper()
	locks := newClient(t, p.master.Client(), core.WithTTL(long), core.WithLogger(nil))
	var mu sync.Mutex
	tokens := make(map[string]int64)
	enough := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	for who := range 16 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprint("name", who, "-", i)
				lease, err := locks.Mutex(name).TryLock(ctx, opts...)
				if err != nil {
					continue
				}
				mu.Lock()
				tokens[name] = lease.Token()
				if len(tokens) == grants {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	waitFor(t, enough, "the grants")
	p.master.Kill()
	cancel()
	all.Wait()
	return tokens
}

// lost counts the locks that the replica, promoted, does not have.
func (p *replicated) lost(t *testing.T, tokens map[string]int64) (lost int) {
	t.Helper()
	ctx := context.Background()
	rdb := p.replica.Client()
	if err := rdb.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	for name, token := range tokens {
		if rdb.HGet(ctx, "lock:"+name, "token").Val() != strconv.FormatInt(token, 10) {
			lost++
		}
	}
	p.master.Restart() // empty: clients that close have less to wait for
	return lost
}

// TestAcknowledgedGrantsSurvive kills the master with SIGKILL in the middle of grants, over several connections, and
// promotes a replica that always lags behind: it has all locks that were granted.
func TestAcknowledgedGrantsSurvive(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			p := startReplicated(t)
			p.link.Delay(testkit.ToClient, 5*time.Millisecond)
			tokens := grabUntilDead(t, p, 50, core.WithReplicaAck(1, time.Second))
			if lost := p.lost(t, tokens); lost > 0 {
				t.Errorf("%d of %d grants were lost", lost, len(tokens))
			}
		})
	}
}

// TestUnacknowledgedGrantsGetLost is the control: with a replica that does not follow, grants are lost.
func TestUnacknowledgedGrantsGetLost(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	p.link.Drop(testkit.Both)
	tokens := grabUntilDead(t, p, 50)
	if lost := p.lost(t, tokens); lost == 0 {
		t.Errorf("none of %d grants was lost", len(tokens))
	}
}
