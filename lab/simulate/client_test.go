//go:build holdfast_simulation

package simulate_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// client is one process.
type client struct {
	*world
	name    string
	links   []*link // one for each server, as are rdbs
	rdbs    []*redis.Client
	locks   *core.Client  // nil for a Redlock
	redlock *core.Redlock // nil for one server
	work    sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
}

func (w *world) newClient(name string) *client {
	c := &client{world: w, name: name}
	for _, s := range w.servers {
		l := newLink(s)
		c.links = append(c.links, l)
		c.rdbs = append(c.rdbs, redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", Dialer: l.Dial, // a host's name would be looked up outside of the bubble
			DialerRetries: 1, MaxRetries: -1, // between two it sleeps under a mutex, see greetings
		}))
	}
	c.connect()
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

// connect makes the client of core. The servers of a Redlock keep nothing on disk, so they wait after a start.
func (c *client) connect() {
	var err error
	if !c.kind.redlock() {
		c.locks, err = core.New(c.rdbs[0], core.WithLogger(nil), core.WithHooks(core.Hooks{AcquireEnd: c.countHandOvers()}))
	} else {
		var nodes []redis.UniversalClient
		for _, rdb := range c.rdbs {
			nodes = append(nodes, rdb)
		}
		c.redlock, err = core.NewRedlock(nodes, core.WithLogger(nil), core.WithRestartDelay(ttl))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// close ends the client in good order.
func (c *client) close() {
	c.stop()
	c.disconnect()
}

// disconnect waits for the work, which has been told to stop. Releases may not arrive.
func (c *client) disconnect() {
	c.work.Wait()
	if c.redlock != nil {
		_ = c.redlock.Close()
	} else {
		_ = c.locks.Close()
	}
	for _, rdb := range c.rdbs {
		_ = rdb.Close()
	}
}

// crash takes the client from the network for good, so that nothing of what it does at its end arrives.
func (c *client) crash() {
	for _, l := range c.links {
		l.sever()
	}
	c.stop()
	go func() {
		c.disconnect()
		for _, l := range c.links {
			l.cut()
		}
	}()
}

// target is a lock of some strategy.
func (c *client) target() (strategy string, names []string, lock *core.Lock) {
	one := func(strategy string, make core.Strategy, name string) (string, []string, *core.Lock) {
		return strategy, []string{name}, make(name)
	}
	if c.redlock != nil {
		return one("redlock", c.redlock.Mutex, []string{"a", "a", "b", "c"}[c.dice(4)])
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

// visit does one of the things that a process does with locks.
func (c *client) visit() {
	if c.locks != nil && c.dice(8) == 0 {
		c.once()
		return
	}
	if c.locks != nil && c.dice(4) == 0 {
		c.crowd()
		return
	}
	strategy, names, lock := c.target()
	c.pass(strategy, names, lock, 10*time.Second)
}

// crowd lets several goroutines of the process contend for a mutex for a moment, so that they hand it over to each other.
func (c *client) crowd() {
	var all sync.WaitGroup
	for range 4 + c.dice(4) {
		all.Go(func() { c.pass("mutex", []string{"a"}, c.locks.Mutex("a"), 6*time.Millisecond) })
	}
	all.Wait()
}

// countHandOvers returns a hook that counts the grants by which a caller of a process gets the hold of another one.
func (c *client) countHandOvers() func(context.Context, core.AcquireEnd) {
	var mu sync.Mutex
	granted := make(map[string]bool) // by owner
	return func(_ context.Context, e core.AcquireEnd) {
		if e.Err != nil || e.Mode != core.ModeMutex || e.Reentered {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if granted[e.Owner] {
			c.handOvers.Add(1)
		}
		granted[e.Owner] = true
	}
}

// pass locks something, works for up to so long, and lets go.
func (c *client) pass(strategy string, names []string, lock *core.Lock, longest time.Duration) {
	e := history.Event{By: c.name, Call: c.next(), Op: "lock"}
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
	c.hold(e, lease, longest)
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

// hold works for up to so long, and sometimes for longer than the lease lasts.
func (c *client) hold(e history.Event, lease *core.Lease, longest time.Duration) {
	length := c.upTo(longest)
	if longest >= time.Second && c.dice(20) == 0 {
		length = c.upTo(3 * ttl)
	}
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(c.upTo(longest)) {
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
