package sentinel_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// grabUntilDead lets goroutines take one name after the other, until Redis is gone, and kills it after so many
// grants. It returns the tokens of all leases, by name.
func grabUntilDead(t *testing.T, p *coretest.Replicated, grants int, opts ...core.LockOption) map[string]int64 {
	t.Helper()
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long), core.WithLogger(nil))
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
	coretest.WaitFor(t, enough, "the grants")
	p.Master.Kill()
	cancel()
	all.Wait()
	return tokens
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
			p := coretest.StartReplicated(t)
			p.Link.Delay(testkit.ToClient, 5*time.Millisecond)
			tokens := grabUntilDead(t, p, 50, core.WithReplicaAck(1, time.Second))
			if lost := p.Lost(t, tokens); lost > 0 {
				t.Errorf("%d of %d grants were lost", lost, len(tokens))
			}
		})
	}
}

// TestUnacknowledgedGrantsGetLost is the control: with a replica that does not follow, grants are lost.
func TestUnacknowledgedGrantsGetLost(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	p.Link.Drop(testkit.Both)
	tokens := grabUntilDead(t, p, 50)
	if lost := p.Lost(t, tokens); lost == 0 {
		t.Errorf("none of %d grants was lost", len(tokens))
	}
}
