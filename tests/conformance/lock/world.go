package lockconformance

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// world is what one test has to itself.
type world struct {
	t       *testing.T
	subject Subject
	places  []*place
	prefix  string // of the names in Redis, empty for the default of core
}

// worlds counts those that are shared.
var worlds atomic.Int64

// newWorld is for a test that leaves servers alone. It has only the names to itself: others share the servers.
func newWorld(t *testing.T, s Subject) *world {
	prefix := cmp.Or(s.Prefix, "lock:") // which a user may have to have rights to
	return &world{t: t, subject: s, places: s.shared, prefix: fmt.Sprintf("%s%d:", prefix, worlds.Add(1))}
}

// newOwnWorld is for a test that breaks servers, or needs ones with options.
func newOwnWorld(t *testing.T, s Subject, opts ...testkit.Option) *world {
	w := &world{t: t, subject: s, prefix: s.Prefix}
	if s.Deployment != nil {
		w.places = append(w.places, s.Deployment.another(t, opts...))
	}
	for range s.Servers {
		w.places = append(w.places, startServer(t, s.User, opts...))
	}
	if s.User != nil {
		t.Cleanup(w.nothingDenied)
	}
	return w
}

// each does something to every server.
func (w *world) each(do func(*testkit.Server)) {
	for _, p := range w.places {
		for _, s := range p.servers {
			do(s)
		}
	}
}

// restart restarts all servers and returns when they work again. All are down before the first is back, so that none
// is given a lease again by a renewal in between.
func (w *world) restart() {
	w.t.Helper()
	w.each((*testkit.Server).Kill)
	w.each((*testkit.Server).Restart)
	for _, p := range w.places {
		p.settled()
	}
}

// nothingDenied checks that the user was allowed all that was asked for, on those servers that are there to tell.
func (w *world) nothingDenied() {
	w.each(func(s *testkit.Server) {
		for _, what := range s.Denied() {
			w.t.Errorf("Redis denied %s", what)
		}
	})
}

// clients connects to each place, as a process does.
func (w *world) clients() (clients []redis.UniversalClient) {
	for _, p := range w.places {
		clients = append(clients, p.client(w.t, w.subject.User))
	}
	return clients
}

// direct connects to each place as somebody who may do everything.
func (w *world) direct() (clients []redis.UniversalClient) {
	for _, p := range w.places {
		clients = append(clients, p.client(w.t, nil))
	}
	return clients
}

// key is where the lock of that name lies in Redis.
func (w *world) key(name string) string {
	if w.prefix == "" {
		return "lock:" + name
	}
	return w.prefix + name
}

// options are the options of the test, after the prefix.
func (w *world) options(opts []core.Option) []core.Option {
	if w.prefix == "" {
		return opts
	}
	return append([]core.Option{core.WithPrefix(w.prefix)}, opts...)
}

// process is one participant, with connections of its own.
type process struct {
	w       *world
	pair    Pair
	lock    core.Strategy // under test
	rival   core.Strategy
	close   func() error
	relays  []*testkit.Relay   // empty unless it was connected through them
	byPlace [][]*testkit.Relay // the same, for each place apart
}

// process connects a new participant.
func (w *world) process(opts ...core.Option) *process {
	w.t.Helper()
	return w.connect(w.clients(), nil, opts)
}

// relayed connects a new participant through a relay to each server. Its connections give up on a silent server
// soon, so that tests of lost replies need not wait long, and several are warm: with a single one, go-redis
// would meet the fault in a handshake and not re-send.
func (w *world) relayed(opts ...core.Option) *process {
	w.t.Helper()
	return w.throughRelays(opts, readTimeout)
}

// patient is relayed with connections that do not send a request again while the test holds its reply back.
func (w *world) patient(opts ...core.Option) *process {
	w.t.Helper()
	return w.throughRelays(opts, within)
}

func (w *world) throughRelays(opts []core.Option, readTimeout time.Duration) *process {
	w.t.Helper()
	var clients []redis.UniversalClient
	var relays [][]*testkit.Relay
	for _, p := range w.places {
		rdb, through := p.relayed(w.t, readTimeout)
		warm(w.t, rdb)
		clients, relays = append(clients, rdb), append(relays, through)
	}
	return w.connect(clients, relays, opts)
}

func (w *world) connect(clients []redis.UniversalClient, relays [][]*testkit.Relay, opts []core.Option) *process {
	w.t.Helper()
	pair, closer, err := w.subject.Connect(clients, w.options(opts)...)
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	p := &process{
		w: w, pair: pair, lock: pair.Lock.Strategy, rival: pair.Rival.Strategy, close: closer.Close,
		relays: slices.Concat(relays...), byPlace: relays,
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

// everywhere reports whether something is true of a relay in each place: what is about one lock takes one way there.
func (p *process) everywhere(is func(*testkit.Relay) bool) bool {
	return !slices.ContainsFunc(p.byPlace, func(relays []*testkit.Relay) bool {
		return !slices.ContainsFunc(relays, is)
	})
}

// awaitHeld returns once something is held back in each place.
func (p *process) awaitHeld(d testkit.Direction) {
	p.w.t.Helper()
	testkit.Eventually(p.w.t, within, "what passes to be held back", func() bool {
		return p.everywhere(func(r *testkit.Relay) bool { return r.Held(d) > 0 })
	})
}
