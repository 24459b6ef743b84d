package fastpath

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

var (
	seedFlag   = flag.Uint64("fastpath.seed", 0, "seed of the states for fast paths, 0 for a random one")
	statesFlag = flag.Int("fastpath.states", testkit.Rounds(1500, 3000), "states for each fast path")
)

// Path is a fast path, and how to test it.
type Path struct {
	File   string      // without its extension
	Then   string      // the file behind it that is a part of the fast path; "" if there is none
	Source string      // of the whole script
	Fields []string    // hash fields that the script knows and Draw writes
	Draw   func(*Draw) // makes a random state, keys and arguments
	// Replies are the first elements of replies that the script must have given after all states, or "error". They prove
	// that the states reach every branch of the slow path.
	Replies []string
	// Expand is Lua that turns what only the fast path writes into what the slow path writes, in the same keys. It is run
	// before keys are compared. It is "" if the paths write the same.
	Expand string
	// Long returns the reply of the slow path that stands for a shorter reply of the fast path, and other replies as they
	// are. It is nil if the paths reply the same.
	Long func(reply any) any
	// Short returns the request that the fast path gets in place of a request, whose keys it has in front. It is nil if the fast
	// path gets the same.
	Short func(keys, args []string) ([]string, []string)
	// Again is the reply of a fast path with Short that did nothing; nil if it replies nothing then.
	Again any
}

// Compare runs each script with its fast path on random states, and its slow path alone on the same states. The reply, all
// keys with type, content and expiry, and the published messages must be the same. The fast path by itself must answer or
// leave the state as it is. See Path for what a fast path may write and reply more briefly.
//
// All runs have the same clock, which stands still: see frozenClock. So no value is left out of the comparison.
//
// Compare also fails if a fast path in files is none of those given.
func Compare(t *testing.T, files fs.FS, paths ...Path) {
	checkFiles(t, files, paths)
	seed, states := *seedFlag, *statesFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	if testing.Short() {
		states /= 5
	}
	for _, p := range paths {
		t.Run(p.File, func(t *testing.T) {
			t.Parallel()
			fast, slow := p.parts(t, files)
			c := compare(t, fast, slow, p, seed, states)
			t.Logf("seed %d: %d states, of which the fast path answered %d; replies: %v", seed, states, c.answered, c.replies)
			if c.found > 0 {
				t.Errorf("%d of %d states differ, the simplest of them in this:\n%s\n%s", c.found, states, c.simplest,
					testkit.Again(t, fmt.Sprint("-fastpath.seed=", seed), fmt.Sprint("-fastpath.states=", states)))
			}
			c.checkVariety(t, states, p.Replies)
		})
	}
}

// checkFiles fails if a fast path is missing in the list. It also fails if a field of the random states is not one of the
// script: a renamed field would make these states meaningless.
func checkFiles(t *testing.T, files fs.FS, paths []Path) {
	found, err := fs.Glob(files, "*_fast.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		name := strings.TrimSuffix(path.Base(file), ".lua")
		if !slices.ContainsFunc(paths, func(p Path) bool { return p.File == name }) {
			t.Errorf("no test compares %s with its slow path", file)
		}
	}
	for _, p := range paths {
		for _, field := range p.Fields {
			if !strings.Contains(p.Source, "'"+field+"'") {
				t.Errorf("the script of %s.lua knows no field %q, which the random states have", p.File, field)
			}
		}
	}
}

// parts returns the Lua source of the fast path and of the slow path. Both have what comes in front of the fast path.
func (p *Path) parts(t *testing.T, files fs.FS) (fast, slow string) {
	text, err := fs.ReadFile(files, p.File+".lua")
	if err != nil {
		t.Fatal(err)
	}
	if p.Then != "" {
		then, err := fs.ReadFile(files, p.Then+".lua")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, then...)
	}
	common, slow, found := strings.Cut(p.Source, string(text))
	if !found || slow == "" {
		t.Fatalf("the script does not consist of %s.lua and a slow path", p.File)
	}
	return common + string(text), common + slow
}

// stateBatch is how many states are sent to Redis in one pipeline.
const stateBatch = 100

// comparison compares the runs of one script. Each run has a database of its own, so its keys have the same names.
type comparison struct {
	whole, slow, fast *runner
	answered          int            // states that the fast path decided
	replies           map[string]int // how often each status was replied
	found             int            // states in which the paths differ
	simplest          string         // the one of them with the shortest description
}

// compare compares two parts of a script on so many random states.
func compare(t *testing.T, fast, slow string, p Path, seed uint64, states int) *comparison {
	server := testkit.Start(t)
	c := &comparison{
		whole: newRunner(t, server, 0, fast+slow, p, true), slow: newRunner(t, server, 1, slow, p, false), fast: newRunner(t, server, 2, fast, p, true),
		replies: make(map[string]int),
	}
	for first := 0; first < states; first += stateBatch {
		batch := make([]*State, min(stateBatch, states-first))
		for i := range batch {
			batch[i] = newState(seed, first+i, p.Draw)
		}
		c.run(t, batch)
	}
	return c
}

func (c *comparison) run(t *testing.T, states []*State) {
	ctx := context.Background()
	whole, slow, fast := c.whole.run(ctx, t, states), c.slow.run(ctx, t, states), c.fast.run(ctx, t, states)
	for i, s := range states {
		w, sl, f := whole[i], slow[i], fast[i]
		if w.before != sl.before || w.before != f.before {
			t.Fatalf("the copies of a state differ:\n%s%s%s", w.before, sl.before, f.before)
		}
		c.replies[sl.status]++
		if f.reply != noReply {
			c.answered++
		}
		if w.reply == noReply && c.whole.again != nil {
			w = sl // the client sends the whole request then
		}
		if text := difference(w, sl, f); text != "" {
			c.add(fmt.Sprintf("%skeys before:\n%s%s", s, w.before, text))
		}
	}
}

// difference says in what the runs on one state differ. It returns "" if they do not.
func difference(whole, slow, fast outcome) string {
	var text string
	if whole.reply != slow.reply {
		text += fmt.Sprintf("reply\n with the fast path: %s\n slow path alone:    %s\n", whole.reply, slow.reply)
	}
	if whole.expanded != slow.expanded {
		text += fmt.Sprintf("keys\n with the fast path:\n%s slow path alone:\n%s", whole.expanded, slow.expanded)
	}
	if fast.reply == noReply && fast.after != fast.before {
		text += fmt.Sprintf("keys changed by the fast path, which has not answered:\n%s", fast.after)
	}
	return text
}

func (c *comparison) add(difference string) {
	if c.found++; c.found == 1 || len(difference) < len(c.simplest) {
		c.simplest = difference
	}
}

// checkVariety fails if the random states did not reach what they are to reach.
func (c *comparison) checkVariety(t *testing.T, states int, replies []string) {
	for _, status := range replies {
		if c.replies[status] == 0 && states >= 3000 { // the rarest comes some dozen times then
			t.Errorf("no state made the script reply %s", status)
		}
	}
	if share := states / 10; c.answered < share || states-c.answered < share {
		t.Errorf("the fast path answered %d of %d states: want a tenth at least, and as many that it leaves", c.answered, states)
	}
}
