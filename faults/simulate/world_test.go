//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/faults/history"
)

const (
	ttl     = 30 * time.Second // the default, as users have it
	clients = 5
)

// world is one simulation.
type world struct {
	t      *testing.T
	server *miniredis.Miniredis
	random *rand.Rand
	calls  int64
	ctx    context.Context // ends with the work

	mu      sync.Mutex
	events  []history.Event
	highest map[string]int64 // token that a resource has seen
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

// client is one process.
type client struct {
	*world
	name  string
	link  *link
	rdb   *redis.Client
	locks *core.Client
	work  sync.WaitGroup
	ctx   context.Context
	stop  context.CancelFunc
}

func (w *world) newClient(name string) *client {
	c := &client{world: w, name: name, link: newLink(w.server)}
	c.rdb = redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: c.link.Dial, // a host's name would be looked up outside of the bubble
		DialerRetries: 1, MaxRetries: -1, // between two it sleeps under a mutex, see greetings
	})
	var err error
	if c.locks, err = core.New(c.rdb, core.WithLogger(nil)); err != nil {
		w.t.Fatal(err)
	}
	c.ctx, c.stop = context.WithCancel(w.ctx)
	for range 2 {
		c.work.Go(func() {
			for c.ctx.Err() == nil {
				c.visit()
				pause(c.ctx, c.upTo(30*time.Second))
			}
		})
	}
	return c
}

// close ends the client in good order.
func (c *client) close() {
	c.stop()
	c.work.Wait()
	_ = c.locks.Close() // releases may not arrive
	_ = c.rdb.Close()
}

// crash takes the client from the network for good, so that nothing of what it does at its end arrives.
func (c *client) crash() {
	c.link.set(state{dropOut: true, dropBack: true})
	c.stop()
	go func() {
		c.work.Wait()
		_ = c.locks.Close()
		_ = c.rdb.Close()
		c.link.cut()
	}()
}

// target is a lock of some strategy.
func (c *client) target() (strategy string, names []string, lock core.Locker) {
	one := func(strategy string, make core.Strategy, name string) (string, []string, core.Locker) {
		return strategy, []string{name}, make(name)
	}
	switch c.dice(8) {
	case 0, 1:
		return one("mutex", c.locks.Mutex, "a")
	case 2:
		return one("fair", c.locks.Fair, "b")
	case 3:
		return one("fair", c.locks.Fair, "a")
	case 4, 5:
		return one("read", c.locks.Read, "c")
	case 6:
		return one("write", c.locks.Write, "c")
	}
	return "multi", []string{"a", "d"}, core.Multi(c.locks.Mutex("d"), c.locks.Mutex("a"))
}

// visit locks something, works, and lets go.
func (c *client) visit() {
	if c.dice(8) == 0 {
		c.once()
		return
	}
	e := history.Event{By: c.name, Call: c.next(), Op: "lock"}
	strategy, names, lock := c.target()
	e.Strategy, e.Names, e.Shared = strategy, names, strategy == "read"
	ctx, cancel := context.WithTimeout(context.Background(), time.Second+c.upTo(2*ttl))
	defer cancel()
	c.call(e)
	lease, err := lock.Lock(ctx)
	back := e
	back.Kind, back.Err = history.Return, class(err)
	if end, ok := ctx.Deadline(); ok {
		back.Deadline = end.UnixNano()
	}
	if err != nil {
		c.say(back)
		return
	}
	e.Token = lease.Token()
	back.Token, back.Until = e.Token, lease.ValidUntil().UnixNano()
	c.say(back)
	watched := make(chan struct{})
	go func() { defer close(watched); c.watch(e, lease) }()
	c.hold(e, lease)
	e.Op = "unlock"
	c.call(e)
	e.Kind, e.Err = history.Return, class(lease.Unlock(context.Background()))
	c.say(e)
	<-watched
}

func (c *client) call(e history.Event) {
	e.Kind = history.Call
	c.say(e)
}

// hold works for a while, and sometimes for longer than the lease lasts.
func (c *client) hold(e history.Event, lease *core.Lease) {
	length := c.upTo(10 * time.Second)
	if c.dice(20) == 0 {
		length = c.upTo(3 * ttl)
	}
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(c.upTo(8 * time.Second)) {
		if lease.Context().Err() == nil && time.Now().Before(lease.ValidUntil()) {
			v := e
			v.Kind, v.Until = history.Valid, lease.ValidUntil().UnixNano()
			c.say(v)
			if !e.Shared {
				c.write(c.name, e.Call, e.Names[0], e.Token, false)
			}
		}
		if !e.Shared {
			c.write(c.name, e.Call, e.Names[0], e.Token, true)
		}
	}
}

func (c *client) watch(e history.Event, lease *core.Lease) {
	<-lease.Done()
	if cause := context.Cause(lease.Context()); errors.Is(cause, core.ErrLeaseLost) {
		e.Kind, e.Err, e.Until = history.End, class(cause), lease.ValidUntil().UnixNano()
		c.say(e)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// sorted returns the history.
func (w *world) sorted() []history.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.events, func(a, b history.Event) int { return int(a.At - b.At) })
	return w.events
}
