package once_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var modelSeed = flag.Uint64("model.seed", 0, "of the games of TestOnceModel, 0 for a random one")

// runner is an attempt and whether it has been ended.
type runner struct {
	*core.Attempt
	ended bool
}

// onceModel is the state machine of a record, in Go.
type onceModel struct {
	state           core.State // running, completed, unknown, or none
	owner           *runner    // of that state
	count           int        // of attempts
	over            bool       // the lease
	outcomeOnExpiry core.State
	value           string
	token           int64 // of the last attempt

	bounded bool // the group: a first attempt that is released leaves nothing
}

// stateNow is what the record says, the lease taken into account.
func (m *onceModel) stateNow() core.State {
	if m.state == core.StateRunning && m.over {
		return m.outcomeOnExpiry
	}
	return m.state
}

// begin returns the error that a Begin has to have.
func (m *onceModel) begin(policy core.FailurePolicy) error {
	switch s := m.stateNow(); {
	case s == core.StateRunning:
		return core.ErrInProgress
	case s == core.StateCompleted:
		return core.ErrCompleted
	case s == core.StateUnknown, s == core.StateAbandoned && policy == core.HoldFailures:
		return core.ErrOutcomeUnknown
	}
	outcomeOnExpiry := []core.State{core.StateAbandoned, core.StateUnknown}[policy]
	m.set(onceModel{state: core.StateRunning, count: m.count + 1, outcomeOnExpiry: outcomeOnExpiry})
	return nil
}

// end returns the error that the completion of an attempt has to have; a release has the state none.
func (m *onceModel) end(r *runner, state core.State, value string) error {
	switch {
	case r.ended:
		return core.ErrNotHeld
	case m.owner == r: // whether or not its lease is over
	case state == core.StateNone, m.stateNow() != core.StateNone && m.stateNow() != core.StateAbandoned:
		return core.ErrStale
	}
	switch {
	case state == core.StateNone && m.bounded && m.count == 1:
		m.forget()
	case state == core.StateNone:
		m.set(onceModel{count: m.count, token: m.token})
	default:
		m.set(onceModel{state: state, owner: r, count: r.Number(), value: value, token: r.Token()})
	}
	return nil
}

func (m *onceModel) forget() { m.set(onceModel{}) }

// set replaces the record.
func (m *onceModel) set(record onceModel) {
	record.bounded = m.bounded
	*m = record
}

// resolve returns the error that a Resolve has to have.
func (m *onceModel) resolve(value string) error {
	switch m.stateNow() {
	case core.StateRunning:
		return core.ErrInProgress
	case core.StateCompleted:
		if m.value != "" { // a value that is lacking is supplied
			return core.ErrCompleted
		}
	}
	m.set(onceModel{state: core.StateCompleted, count: m.count, value: value, token: m.token})
	return nil
}

func (m *onceModel) declare(r *runner, state core.State) error {
	switch {
	case r.ended:
		return core.ErrNotHeld
	case m.state != core.StateRunning || m.owner != r:
		return core.ErrStale
	}
	if m.outcomeOnExpiry = state; state == core.StateNone {
		m.outcomeOnExpiry = core.StateAbandoned
	}
	return nil
}

// onceGame makes random moves with several attempts, and checks each against the model.
type onceGame struct {
	*testing.T
	rdb   *redis.Client
	locks []*core.Client
	name  string
	seed  uint64
	rand  *rand.Rand
	model onceModel
	all   []*runner
	token int64
	moves []string
}

func (g *onceGame) failf(format string, args ...any) {
	g.Helper()
	g.Fatalf("%s: %s\nafter %q\n%s", g.name, fmt.Sprintf(format, args...), g.moves, testkit.Again(g.T, fmt.Sprint("-model.seed=", g.seed)))
}

// expect compares what a move returned; nil has to be nil.
func (g *onceGame) expect(move string, got, want error) {
	g.Helper()
	if g.moves = append(g.moves, move); !errors.Is(got, want) {
		g.failf("%s: %v, want %v", move, got, want)
	}
}

func (g *onceGame) begin() {
	policy := core.FailurePolicy(g.rand.IntN(2))
	opts := []core.OnceOption{core.WithFailurePolicy(policy)}
	if g.model.bounded {
		opts = append(opts, core.WithQuota(1))
	}
	a, err := g.locks[g.rand.IntN(len(g.locks))].Once(g.name, opts...).Begin(context.Background())
	g.expect(fmt.Sprint("begin ", policy), err, g.model.begin(policy))
	if err != nil {
		return
	}
	g.model.owner = &runner{Attempt: a}
	g.all = append(g.all, g.model.owner)
	if a.Number() != g.model.count || a.Token() <= g.token {
		g.failf("attempt %d with token %d after %d", a.Number(), a.Token(), g.token)
	}
	g.token, g.model.token = a.Token(), a.Token()
}

// act lets one of the attempts, which may be long over, do something.
func (g *onceGame) act(i int) {
	ctx, r := context.Background(), g.all[i]
	who := fmt.Sprint(" by ", i)
	switch g.rand.IntN(6) {
	case 0, 1:
		value := fmt.Sprint("value", len(g.moves))
		want := g.model.end(r, core.StateCompleted, value)
		g.expect("complete"+who, r.Complete(ctx, []byte(value)), want)
		r.ended = true
	case 2:
		want := g.model.end(r, core.StateNone, "")
		g.expect("release"+who, r.Release(ctx), want)
		r.ended = true
	case 3:
		want := g.model.end(r, core.StateUnknown, "")
		g.expect("hold"+who, r.Hold(ctx, "reason"), want)
		r.ended = true
	default:
		state := []core.State{core.StateNone, core.StateUnknown, core.StateCompleted}[g.rand.IntN(3)]
		want := g.model.declare(r, state)
		g.expect(fmt.Sprintf("declare %q%s", state, who), r.Declare(ctx, state), want)
	}
}

func (g *onceGame) move() {
	ctx := context.Background()
	switch n := g.rand.IntN(18); {
	case n < 5 || len(g.all) == 0:
		g.begin()
	case n < 10:
		g.act(len(g.all) - 1 - g.rand.IntN(min(3, len(g.all))))
	case n < 14:
		if g.model.state == core.StateRunning {
			coretest.Abandon(g, g.rdb, g.name)
			g.model.over = true
			g.moves = append(g.moves, "the lease ends")
		}
	case n < 16:
		value := fmt.Sprint("value", len(g.moves))
		want := g.model.resolve(value)
		g.expect("resolve", coretest.ResolveNow(ctx, g.locks[0].Once(g.name), []byte(value)), want)
	case n == 16:
		g.model.forget()
		g.expect("forget", coretest.ForgetNow(ctx, g.locks[0].Once(g.name)), nil)
	default:
		g.model.forget()
		g.expect("eviction", g.rdb.Del(ctx, coretest.RecordOf(g.name)).Err(), nil)
	}
}

// check compares the record with the model.
func (g *onceGame) check() {
	m, r := &g.model, coretest.MustPeek(g, g.locks[0].Once(g.name))
	state := m.stateNow()
	omitted := state == core.StateCompleted && m.state == core.StateRunning
	if r.State != state || r.Attempt != m.count || string(r.Value) != m.value || r.Omitted != omitted ||
		(state != core.StateNone && r.Token != m.token) {
		g.failf("record %+v, want %q of attempt %d", r, state, m.count)
	}
	if g.rdb.PTTL(context.Background(), coretest.RecordOf(g.name)).Val() == -1 {
		g.failf("the record stays for ever")
	}
}

// TestOnceModel plays random games.
func TestOnceModel(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := []*core.Client{coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))}
	seed := cmp.Or(*modelSeed, rand.Uint64())
	for i := range 60 {
		g := &onceGame{
			T: t, rdb: rdb, locks: locks, name: fmt.Sprint("game", i), seed: seed, rand: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		if g.model.bounded = i%2 == 1; g.model.bounded {
			g.name = fmt.Sprintf("{game%d}", i)
		}
		for range 40 {
			g.move()
			g.check()
		}
	}
}
