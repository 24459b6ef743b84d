package core

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// silentStrategy is a strategy whose server does not answer.
type silentStrategy struct {
	script.Strategy
	pending *transport.Pending
	asked   *atomic.Int32
}

func (s silentStrategy) Name() string                            { return "silent" }
func (s silentStrategy) Pending(*script.Hold) *transport.Pending { return s.pending }
func (s silentStrategy) RenewAll([]*script.Renewal)              {}

func (s silentStrategy) Release(context.Context, *script.Hold, script.ReleaseReason) (bool, error) {
	s.asked.Add(1)
	return false, transport.WithOutcome(errors.New("connection refused"), transport.NotExecuted)
}

// TestCloseWithoutWaitingForExpiredHolds: while the server does not answer, Close waits for a hold that is in Redis still, as long
// as it does for any answer, but not beyond its end. It waits for none that had expired before, whether the lease was lost, or
// was unlocked without a reply.
func TestCloseWithoutWaitingForExpiredHolds(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	for name, test := range map[string]struct {
		ttl    time.Duration
		before func(l *Lease) // what happens before Close
		most   time.Duration  // that Close takes
		failed bool
	}{
		"lost":               {ttl, func(*Lease) { time.Sleep(2 * ttl) }, 0, false},
		"unlocked":           {ttl, func(l *Lease) { _ = l.Unlock(context.Background()); time.Sleep(2 * ttl) }, 0, false},
		"expires meanwhile":  {ttl, func(*Lease) {}, ttl, false},
		"unlocked and held":  {ttl, func(l *Lease) { l.Abandon(); _ = l.Unlock(context.Background()) }, ttl, false},
		"held for long":      {time.Hour, func(*Lease) {}, acquire.ReleaseTimeout, true},
		"lost and then held": {time.Hour, func(l *Lease) { _ = l.Unlock(context.Background()) }, acquire.ReleaseTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				noClient := struct{ redis.UniversalClient }{}
				e := newEngine(newClientConfig([]Option{WithInstance(""), WithLogger(nil)}), nil, drift)
				s := silentStrategy{pending: transport.NewExecutor(noClient, e.work(), nil).PendingOf("key"), asked: new(atomic.Int32)}
				config := lockConfig{ttl: test.ttl}
				hold := config.hold("name", script.NewKeys("lock:", "name"))
				l, err := e.newLease(context.Background(), s, hold, script.Grant{SentAt: e.now(), TTL: test.ttl}, &config, nil)
				if err != nil {
					t.Fatal(err)
				}
				test.before(l)
				synctest.Wait()
				began := time.Now()
				err = e.close()
				const interval = time.Second // between two tries
				if took := time.Since(began); took > test.most+interval || test.most > 0 && took == 0 {
					t.Errorf("Close took %v, want %v", took, test.most)
				}
				if (err != nil) != test.failed {
					t.Errorf("error %v", err)
				}
				if s.asked.Load() == 0 {
					t.Error("no release was sent")
				}
			})
		})
	}
}
