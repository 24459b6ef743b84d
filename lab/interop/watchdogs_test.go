//go:build unix

package interop_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// alternating is how many locks go to and fro.
const alternating = 8

// TestWatchdogs passes locks to and fro, each of which is held for several TTLs, while each side holds one all the
// time. So both renew the whole time, what the other has held a moment ago too, and none may lose anything.
func TestWatchdogs(t *testing.T) {
	version := versions(t)[0]
	p := single(t)
	java, golang := p.java(t, version, short), p.golang(t, short)
	parties := []*party{java, golang}
	names := []string{"always-java", "always-go"}
	for _, q := range parties {
		q.must("always", "lock", lock("always-"+q.name)...)
	}
	var holds atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(*watch)
	for i := range alternating {
		name := fmt.Sprintf("name%d", i)
		names = append(names, name)
		all.Go(func() {
			for turn := i; time.Now().Before(end); turn++ {
				if !hold(t, parties[turn%2], name) {
					return
				}
				holds.Add(1)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var seen renewals
	var looking sync.WaitGroup
	looking.Go(func() { seen = watchRenewals(ctx, t, p, names) })
	all.Wait()
	stop()
	looking.Wait()
	for _, q := range parties {
		q.must("always", "unlock", lock("always-"+q.name)...)
	}
	t.Logf("%d holds in %v, %d renewals; of a TTL of %v were left between %v and %v", holds.Load(), *watch, seen.count,
		short, seen.least, seen.most)
	if seen.most > short {
		t.Errorf("a lock lasts for %v, more than anybody asked for", seen.most)
	}
}

// hold lets one side hold a lock for more than two TTLs, and reports whether it still had it at the end.
func hold(t *testing.T, q *party, name string) bool {
	for _, step := range []struct {
		verb  string
		after time.Duration
	}{{"lock", 0}, {"unlock", short * 5 / 2}} {
		time.Sleep(step.after)
		a, err := q.await(q.begin(name, step.verb, lock(name)...), within)
		if err != nil || a.Failed {
			t.Errorf("%s: %s %s: %s, %v", q.name, step.verb, name, a.Value, err)
			return false
		}
	}
	return true
}

// renewals is what became of TTLs.
type renewals struct {
	count       int
	least, most time.Duration
}

// watchRenewals looks at TTLs until the context ends.
func watchRenewals(ctx context.Context, t *testing.T, p *place, names []string) renewals {
	r := renewals{least: short}
	last := make(map[string]time.Duration)
	for ctx.Err() == nil {
		for _, name := range names {
			ttl := p.rdb.PTTL(ctx, name).Val()
			if ttl <= 0 {
				continue // nobody holds it just now
			}
			if before := last[name]; before > 0 && ttl > before+short/10 {
				r.count++
			}
			last[name] = ttl
			r.least, r.most = min(r.least, ttl), max(r.most, ttl)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return r
}
