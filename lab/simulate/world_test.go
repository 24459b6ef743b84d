//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

const (
	ttl     = 30 * time.Second // the default, as users have it
	clients = 5
)

// world is one simulation.
type world struct {
	t       *testing.T
	kind    kind
	servers []*server
	random  *rand.Rand      // guarded by mu
	calls   int64           // guarded by mu
	ctx     context.Context // ends with the work

	mu      sync.Mutex
	events  []history.Event
	highest map[string]int64 // token that a resource has seen

	handOvers atomic.Int64 // inside a process
}

func newWorld(t *testing.T, kind kind, seed uint64) *world {
	w := &world{t: t, kind: kind, random: rand.New(rand.NewPCG(seed, 3)), highest: make(map[string]int64)}
	for number := range kind.servers {
		w.servers = append(w.servers, newServer(number))
	}
	w.say(history.Event{Kind: history.Meta, Name: kind.String(), Until: int64(ttl)})
	return w
}

func now() int64 { return time.Now().UnixNano() }

func (w *world) say(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.At == 0 {
		e.At = now()
	}
	w.events = append(w.events, e)
}

// next numbers calls.
func (w *world) next() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return w.calls
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.random.Int64N(int64(d)))
}

// order is a random order of the first n numbers.
func (w *world) order(n int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Perm(n)
}

func (w *world) dice(n int) int { return int(w.upTo(time.Duration(n))) }

// write writes to the resource, which refuses old tokens, and to the one that does not.
func (w *world) write(by string, call int64, name string, token int64, unfenced bool) {
	key := fmt.Sprint(name, unfenced)
	w.mu.Lock()
	refused := token < w.highest[key]
	w.highest[key] = max(w.highest[key], token)
	w.mu.Unlock()
	w.say(history.Event{
		By: by, Call: call, Kind: history.Write, Names: []string{name}, Token: token, Refused: refused, Unfenced: unfenced,
	})
}

// sorted returns the history.
func (w *world) sorted() []history.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.events, func(a, b history.Event) int { return int(a.At - b.At) })
	return w.events
}
