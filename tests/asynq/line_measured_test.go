package asynq_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

var (
	lines = flag.Bool("lines", false, "measure how fast the tasks of one key run, and those of others beside them")
	only  = flag.String("only", "", "with -lines, measure this row of the table alone")
)

// TestLinesMeasured prints the table of lab/tasks/RESULTS.md: a burst of tasks of one user, and a trickle of another's, on one
// server with ten workers and asynq's default intervals.
func TestLinesMeasured(t *testing.T) {
	if !*lines {
		t.Skip("only with -lines, which takes minutes")
	}
	user := asynqlock.ByPayload("order")
	for _, test := range []struct {
		name  string
		guard func(s *shop) asynq.MiddlewareFunc
	}{
		{"asynq alone", func(*shop) asynq.MiddlewareFunc {
			return func(next asynq.Handler) asynq.Handler { return next }
		}},
		{"a semaphore of one", func(s *shop) asynq.MiddlewareFunc { return semaphore(s.redis.Client()) }},
		{"Exclusive", func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Mutex, user)
		}},
		{"Exclusive, WithWait(time.Minute)", func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Fair, user, core.WithWait(time.Minute))
		}},
		{"Exclusive, WithLine", func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Fair, user, asynqlock.WithLine(s.redis.Client()))
		}},
		{"Exclusive, five at a time", func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Limit(5), user)
		}},
		{"Exclusive, five at a time, WithLine", func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Limit(5), user, asynqlock.WithLine(s.redis.Client()))
		}},
	} {
		if *only != "" && *only != test.name {
			continue
		}
		s := newShop(t)
		var bounces deferrals
		s.locks = s.newLocks(bounces.hooks())
		m := &burst{shop: s, came: make(map[string]time.Time)}
		m.run(test.guard(s))
		all, most := bounces.count()
		if test.name == "a semaphore of one" {
			all, most = int(refusals.Load()), 0
		}
		t.Logf("| %s | %s | %.1f s | %d | %d | %d, %d | %v | %v |", test.name, m.drained(), m.last.Seconds(), m.most, m.inversions(),
			all, most, m.quantile(0.5), m.quantile(0.9))
	}
}

const (
	burstTasks = 100
	burstHeld  = 200 * time.Millisecond
	measured   = 150 * time.Second // at most
	trickle    = 30 * time.Second
)

// burst is one run of the measurement.
type burst struct {
	*shop
	mu      sync.Mutex
	came    map[string]time.Time
	order   []string
	others  []time.Duration
	begin   time.Time
	last    time.Duration
	running int
	most    int
}

func (m *burst) run(guard asynq.MiddlewareFunc) {
	for i := range burstTasks {
		m.enqueue(receipt("hot"), asynq.TaskID(fmt.Sprintf("hot-%03d", i)))
	}
	m.begin = time.Now()
	server := m.serveWith(func(cfg *asynq.Config) {
		defaults(cfg)
		cfg.IsFailure, cfg.RetryDelayFunc = notRefused, refusedDelay
	}, m.process, guard)
	defer server.Shutdown()
	for i := range int(trickle / (200 * time.Millisecond)) {
		id := fmt.Sprintf("other-%03d", i)
		m.mu.Lock()
		m.came[id] = time.Now()
		m.mu.Unlock()
		m.enqueue(receipt(id), asynq.TaskID(id))
		time.Sleep(200 * time.Millisecond)
	}
	for time.Since(m.begin) < measured && m.left() {
		time.Sleep(100 * time.Millisecond)
	}
}

func (m *burst) left() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.order) < burstTasks
}

func (m *burst) process(ctx context.Context, _ *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	m.mu.Lock()
	came, other := m.came[id]
	if other {
		m.others = append(m.others, time.Since(came))
		m.mu.Unlock()
		return nil
	}
	m.order = append(m.order, id)
	m.running++
	m.most = max(m.most, m.running)
	m.mu.Unlock()
	time.Sleep(burstHeld)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.last = time.Since(m.begin)
	return nil
}

func (m *burst) drained() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%d of %d", len(m.order), burstTasks)
}

// inversions counts tasks that ran before one that was enqueued more than ten, the number of workers, before them.
func (m *burst) inversions() (n int) {
	for i, id := range m.order {
		var later, own int
		_, _ = fmt.Sscanf(id, "hot-%d", &own)
		if i < len(m.order)-1 {
			for _, other := range m.order[i+1:] {
				var number int
				_, _ = fmt.Sscanf(other, "hot-%d", &number)
				if own > number+10 {
					later++
				}
			}
		}
		if later > 0 {
			n++
		}
	}
	return n
}

func (m *burst) quantile(q float64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.others)
	if len(m.others) == 0 {
		return 0
	}
	return m.others[int(q*float64(len(m.others)-1))].Round(10 * time.Millisecond)
}
