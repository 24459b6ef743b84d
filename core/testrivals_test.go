package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// rivals contend for locks until they are stopped, and write down when each had which.
type rivals struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	sections map[string][]section // by the lock's name
	lost     int                  // leases that ended under their holders
	failed   map[string]int       // refusals, by error
}

// contend lets one rival per lock begin. All locks of one name exclude each other.
func contend(t testing.TB, locks ...core.Locker) *rivals {
	ctx, stop := context.WithCancel(context.Background())
	r := &rivals{stop: stop, sections: make(map[string][]section), failed: make(map[string]int)}
	for _, l := range locks {
		r.all.Go(func() {
			for ctx.Err() == nil {
				r.pass(ctx, l)
			}
		})
	}
	t.Cleanup(r.end)
	return r
}

func (r *rivals) pass(ctx context.Context, l core.Locker) {
	lease, err := l.Lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.mu.Lock()
			r.failed[err.Error()]++
			r.mu.Unlock()
		}
		return
	}
	s := section{Token: lease.Token(), From: time.Now().UnixMicro()}
	held := time.NewTimer(time.Millisecond)
	select {
	case <-held.C:
	case <-lease.Done():
	}
	s.To = time.Now().UnixMicro()
	lost := errors.Is(context.Cause(lease.Context()), core.ErrLeaseLost)
	_ = lease.Unlock(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sections[l.Name()] = append(r.sections[l.Name()], s)
	if lost {
		r.lost++
	}
}

// least returns how often the lock was held that was held the least.
func (r *rivals) least(names []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	least := len(r.sections[names[0]])
	for _, name := range names {
		least = min(least, len(r.sections[name]))
	}
	return least
}

func (r *rivals) end() {
	r.stop()
	r.all.Wait()
}

// check ends the contest and looks for violations.
func (r *rivals) check(t testing.TB) {
	t.Helper()
	r.end()
	for name, sections := range r.sections {
		for _, v := range violations(sections) {
			t.Errorf("%s: %s", name, v)
		}
	}
	if r.lost > 0 {
		t.Errorf("%d leases were lost", r.lost)
	}
}
