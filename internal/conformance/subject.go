package conformance

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Subject is a strategy under test.
type Subject struct {
	// Servers is on how many servers a lock lives.
	Servers int
	// Unordered says that callers of one process need not be served in the order in which they came.
	Unordered bool
	// Connect makes the strategy of one process from its connections, one to each server.
	Connect func(clients []*redis.Client, opts ...core.Option) (core.Strategy, io.Closer, error)
}

// Run runs the suite as parallel subtests of t.
func Run(t *testing.T, s Subject) {
	for _, group := range []map[string]func(*testing.T, Subject){
		exclusionTests, lossTests, waitingTests, reentryTests, retryTests, tokenTests, inputTests, lifeTests,
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	}
}

// world is what one test has to itself.
type world struct {
	t       *testing.T
	subject Subject
	servers []*redistest.Server
}

func newWorld(t *testing.T, s Subject, opts ...redistest.Option) *world {
	w := &world{t: t, subject: s}
	for range s.Servers {
		w.servers = append(w.servers, redistest.Start(t, opts...))
	}
	return w
}

// process is one participant, with connections of its own.
type process struct {
	w      *world
	lock   core.Strategy
	close  func() error
	relays []*redistest.Relay // empty unless it was connected through them
}

// process connects a new participant.
func (w *world) process(opts ...core.Option) *process {
	w.t.Helper()
	var clients []*redis.Client
	for _, s := range w.servers {
		clients = append(clients, s.Client())
	}
	return w.connect(clients, nil, opts)
}

// relayed connects a new participant through a relay to each server. Its connections give up on a silent server
// soon, so that tests of lost replies need not wait long, and several are warm: with a single one, go-redis
// would meet the fault in a handshake and not re-send.
func (w *world) relayed(opts ...core.Option) *process {
	w.t.Helper()
	var clients []*redis.Client
	var relays []*redistest.Relay
	for _, s := range w.servers {
		relay := s.Relay()
		rdb := relay.Client(impatient)
		warm(w.t, rdb)
		clients, relays = append(clients, rdb), append(relays, relay)
	}
	return w.connect(clients, relays, opts)
}

func impatient(o *redis.Options) { o.ReadTimeout = readTimeout }

// warm opens several connections, by as many requests at once that take a moment.
func warm(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			nothing := &redis.XReadArgs{Streams: []string{"warm", "$"}, Block: 20 * time.Millisecond}
			if err := rdb.XRead(context.Background(), nothing).Err(); !errors.Is(err, redis.Nil) {
				t.Errorf("warm the pool: %v", err)
			}
		})
	}
	all.Wait()
}

func (w *world) connect(clients []*redis.Client, relays []*redistest.Relay, opts []core.Option) *process {
	w.t.Helper()
	strategy, closer, err := w.subject.Connect(clients, opts...)
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	w.t.Cleanup(func() { _ = closer.Close() })
	return &process{w: w, lock: strategy, close: closer.Close, relays: relays}
}

// awaitHeld returns once every relay of the process holds something back.
func (p *process) awaitHeld(d redistest.Direction) {
	p.w.t.Helper()
	redistest.Eventually(p.w.t, within, "what passes to be held back", func() bool {
		for _, r := range p.relays {
			if r.Held(d) == 0 {
				return false
			}
		}
		return true
	})
}

// must returns the lease or ends the test.
func (w *world) must(lease *core.Lease, err error) *core.Lease {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("lock: %v", err)
	}
	return lease
}

func (w *world) unlock(lease *core.Lease) {
	w.t.Helper()
	if err := lease.Unlock(context.Background()); err != nil {
		w.t.Errorf("unlock: %v", err)
	}
}

// wantErr checks that err is all of targets.
func (w *world) wantErr(err error, targets ...error) {
	w.t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.t.Errorf("error %v is not %v", err, target)
		}
	}
}

// free checks that nobody holds the lock, by taking it in a new process. Every TTL in this suite is much longer
// than within, so a hold that was left behind fails the test.
func (w *world) free(name string) {
	w.t.Helper()
	other := w.process()
	redistest.Eventually(w.t, within, "the lock to be free", func() bool {
		lease, err := other.lock(name).TryLock(context.Background())
		if err != nil && !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) {
			w.t.Errorf("try lock: %v", err)
		}
		if lease != nil {
			w.unlock(lease)
		}
		return lease != nil
	})
}

// held checks that another process does not get the lock.
func (w *world) held(name string) {
	w.t.Helper()
	_, err := w.process().lock(name).TryLock(context.Background())
	w.wantErr(err, core.ErrNotAcquired)
}

func (w *world) each(do func(*redistest.Server)) {
	for _, s := range w.servers {
		do(s)
	}
}
