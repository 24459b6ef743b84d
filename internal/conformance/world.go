package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

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

func (w *world) each(do func(*redistest.Server)) {
	for _, s := range w.servers {
		do(s)
	}
}

// restart has all servers down before the first is back, so that none is given a lease again by a renewal in between.
func (w *world) restart() {
	w.each((*redistest.Server).Kill)
	w.each((*redistest.Server).Restart)
}

// process is one participant, with connections of its own.
type process struct {
	w      *world
	pair   Pair
	lock   core.Strategy // under test
	rival  core.Strategy
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
	return w.throughRelays(opts, func(o *redis.Options) { o.ReadTimeout = readTimeout })
}

// patient is relayed with connections that do not send a request again while the test holds its reply back.
func (w *world) patient(opts ...core.Option) *process {
	w.t.Helper()
	return w.throughRelays(opts, func(o *redis.Options) { o.ReadTimeout = within })
}

func (w *world) throughRelays(opts []core.Option, edit func(*redis.Options)) *process {
	w.t.Helper()
	var clients []*redis.Client
	var relays []*redistest.Relay
	for _, s := range w.servers {
		relay := s.Relay()
		rdb := relay.Client(edit)
		warm(w.t, rdb)
		clients, relays = append(clients, rdb), append(relays, relay)
	}
	return w.connect(clients, relays, opts)
}

// warm opens several connections, by as many requests at once that take a moment. On a busy machine the handshake of
// an impatient connection may need another try.
func warm(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			nothing := &redis.XReadArgs{Streams: []string{"warm", "$"}, Block: 20 * time.Millisecond}
			for began := time.Now(); ; {
				err := rdb.XRead(context.Background(), nothing).Err()
				if errors.Is(err, redis.Nil) {
					return
				}
				if time.Since(began) > within {
					t.Errorf("warm the pool: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (w *world) connect(clients []*redis.Client, relays []*redistest.Relay, opts []core.Option) *process {
	w.t.Helper()
	pair, closer, err := w.subject.Connect(clients, w.subject.options(opts)...)
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	p := &process{
		w: w, pair: pair, lock: pair.Lock.Strategy, rival: pair.Rival.Strategy, close: closer.Close, relays: relays,
	}
	w.t.Cleanup(func() {
		p.heal() // closing would wait for what cannot be sent
		_ = p.close()
	})
	return p
}

// byTurns returns the one side for even numbers and the other for odd ones.
func (p *process) byTurns(n int) Side { return []Side{p.pair.Lock, p.pair.Rival}[n%2] }

// heal ends all faults of the process's connections.
func (p *process) heal() {
	for _, r := range p.relays {
		r.Heal()
	}
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
