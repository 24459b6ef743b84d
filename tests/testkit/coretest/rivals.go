package coretest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Rivals contend for locks until they are stopped, and write down when each had which.
type Rivals struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	Sections map[string][]Section // by the lock's name
	Lost     int                  // leases that ended under their holders
	Failed   map[string]int       // refusals, by error
}

// Contend lets one rival per lock begin. All locks of one name exclude each other.
func Contend(t testing.TB, locks ...*core.Lock) *Rivals {
	ctx, stop := context.WithCancel(context.Background())
	r := &Rivals{stop: stop, Sections: make(map[string][]Section), Failed: make(map[string]int)}
	for _, l := range locks {
		r.all.Go(func() {
			for ctx.Err() == nil {
				r.pass(ctx, l)
			}
		})
	}
	t.Cleanup(r.End)
	return r
}

func (r *Rivals) pass(ctx context.Context, l *core.Lock) {
	lease, err := l.Lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.mu.Lock()
			r.Failed[err.Error()]++
			r.mu.Unlock()
		}
		return
	}
	s := Section{Token: lease.Token(), From: time.Now().UnixMicro()}
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
	r.Sections[l.Name()] = append(r.Sections[l.Name()], s)
	if lost {
		r.Lost++
	}
}

// Least returns how often the lock was held that was held the least.
func (r *Rivals) Least(names []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	least := len(r.Sections[names[0]])
	for _, name := range names {
		least = min(least, len(r.Sections[name]))
	}
	return least
}

func (r *Rivals) End() {
	r.stop()
	r.all.Wait()
}

// Check ends the contest and looks for violations.
func (r *Rivals) Check(t testing.TB) {
	t.Helper()
	r.End()
	for name, sections := range r.Sections {
		for _, v := range Violations(sections) {
			t.Errorf("%s: %s", name, v)
		}
	}
	if r.Lost > 0 {
		t.Errorf("%d leases were lost", r.Lost)
	}
}
