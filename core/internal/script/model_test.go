package script_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "the only episode that TestModel and TestLostKey run, 0 for many")
	modelOps  = flag.Int("model.ops", testkit.Rounds(8_000, 25_000), "operations of TestModel")
)

// modelPermits is true if episodes may have semaphores.
var modelPermits = true

const (
	// patience is how long an episode may take. Every duration in it is an odd number of seconds and time passes in
	// steps of two, so what is to happen first is certain as long as the real time stays well below one second.
	patience = 800 * time.Millisecond
	// modelLength is how many operations an episode has.
	modelLength = 150
	// modelHistory is how many of them are shown when it fails.
	modelHistory = 30
	// modelEpisodes is how many run at the same time, each on a lock of its own.
	modelEpisodes = 6
)

// TestModel compares the scripts with a model of what they must do, over many random operations of several owners on
// one lock, with crashes, expiries, repeated commands and lost keys. Time is made to pass by an "age" script.
func TestModel(t *testing.T) {
	instance := startInstance(t)
	ears := listenAll(t, instance)
	if *modelSeed != 0 {
		for try := range 10 {
			if e := newEpisode(instance, ears, *modelSeed); e.run() {
				t.Logf("try %d: %d operations, no divergence", try, e.ops)
				return
			} else if e.err != nil {
				t.Fatal(e.report() + e.again(t))
			}
		}
		t.Fatal("the machine is too slow for this")
	}
	want := int64(*modelOps)
	if testing.Short() {
		want /= 20
	}
	var ops, late, reserves atomic.Int64
	var mu sync.Mutex
	calls := make(map[string]int)
	var group sync.WaitGroup
	for range modelEpisodes {
		group.Go(func() {
			for ops.Load() < want && !t.Failed() {
				e := newEpisode(instance, ears, rand.Uint64())
				whole := e.run()
				ops.Add(int64(e.ops))
				mu.Lock()
				for strategy, n := range e.calls {
					calls[strategy] += n
				}
				mu.Unlock()
				reserves.Add(int64(e.reserves))
				switch {
				case e.err != nil:
					t.Error(e.report() + e.again(t))
				case !whole:
					late.Add(1)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d operations; %d tokens were reserved; %d episodes were cut short because they took too long; calls: %v",
		ops.Load(), reserves.Load(), late.Load(), calls)
	if reserves.Load() == 0 && !testing.Short() {
		t.Error("no tokens were reserved for hand-overs")
	}
}

// TestModelUnswept compares the scripts with the model while none of them takes out shares that have expired, as when
// there are more of these than one run may deal with: what is left of them must count for nothing.
func TestModelUnswept(t *testing.T) {
	for _, s := range script.QueueScripts {
		swept := *s
		source := strings.Replace(swept.Source, "local maxExpired = 100 ", "local maxExpired = 0 ", 1)
		if source == swept.Source {
			t.Fatal("the scripts sweep in another way: the test tests nothing")
		}
		*s = transport.NewScript(source)
		defer func() { *s = swept }()
	}
	defer func(ops int) { *modelOps = ops }(*modelOps)
	*modelOps /= 4
	modelPermits = false // what has expired counts until it is removed
	defer func() { modelPermits = true }()
	t.Run("Random", TestModel)
	t.Run("Stories", TestModelStories)
}

// modelSlots has the slots of the episodes that run, because locks of one slot share their last token.
var modelSlots sync.Map

// episode is some operations on one new lock.
type episode struct {
	instance *script.Instance
	ears     *ears
	name     string
	keys     script.Keys
	seed     uint64
	rand     *rand.Rand
	began    time.Time
	model    *model
	ops      int
	calls    map[string]int // how many of them are calls of a strategy, by its name
	reserves int            // tokens that grants have for hand-overs
	log      []string
	err      error // the first divergence

	moves    []move
	owners   []string
	kinds    []kind
	minHolds int          // one of so many has a minimum time, 0 for none
	active   []*contender // those that may ask again
	ended    []*contender // those that released; the last some
	crowd    int          // how many may be active
	nextID   int
	last     func() string // the last command once more; nil if it may be answered differently
	answer   string        // to that command
	number   int64         // the last that was given in line
	lost     bool          // the lock's key was deleted, so what belongs to it may be left until it expires
}

func newEpisode(instance *script.Instance, ears *ears, seed uint64) *episode {
	e := &episode{
		instance: instance, ears: ears, seed: seed, model: newModel(), calls: make(map[string]int),
		rand: rand.New(rand.NewPCG(seed, 0)), began: time.Now(),
	}
	instance.TokenKeys.UseSlots()
	for n, taken := 0, true; taken; n++ {
		e.name = fmt.Sprintf("model-%x-%d", seed, n)
		e.keys = script.NewKeys("lock:", e.name)
		_, taken = modelSlots.LoadOrStore(transport.Slot(e.keys.Lock), e)
	}
	e.draw()
	return e
}

// run reports whether the episode came to its end. If not, either it took too long or err is set.
func (e *episode) run() bool {
	for e.ops < modelLength {
		e.step()
		if e.err != nil || e.tooLate() {
			break
		}
	}
	if e.err == nil && !e.tooLate() {
		e.finish()
	}
	e.clear()
	if e.tooLate() {
		e.err = nil // what had time to expire and what had not is not certain
		return false
	}
	return e.err == nil
}

func (e *episode) tooLate() bool { return time.Since(e.began) > patience }

// note records what was done.
func (e *episode) note(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf("%4d %3ds  ", e.ops, e.model.now)+fmt.Sprintf(format, args...))
}

// differs records a divergence.
func (e *episode) differs(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *episode) report() string {
	return fmt.Sprintf("%v\nThe last operations:\n%s", e.err, strings.Join(e.log[max(0, len(e.log)-modelHistory):], "\n"))
}

// again tells how to repeat the episode.
func (e *episode) again(t *testing.T) string {
	return "\n" + testkit.Again(t, fmt.Sprint("-model.seed=", e.seed))
}
