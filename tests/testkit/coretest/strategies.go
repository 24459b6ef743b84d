package coretest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	lockconformance "github.com/holdfast-go/holdfast/tests/conformance/lock"
)

// side is one of the strategies of a client, with what the suite has to know of it.
type side func(*core.Client) lockconformance.Side

func mutex(c *core.Client) lockconformance.Side { return lockconformance.Side{Strategy: c.Mutex} }

// waitState is the side of a strategy whose waiters stand in line.
func waitState(c *core.Client, strategy core.Strategy, shared bool) lockconformance.Side {
	return lockconformance.Side{
		Strategy: strategy,
		Shared:   shared,
		Waiters: func(ctx context.Context, name string) (int, error) {
			info, err := c.Inspect(ctx, name)
			return len(info.Queue), err
		},
	}
}

func fair(c *core.Client) lockconformance.Side { return waitState(c, c.Fair, false) }

func read(c *core.Client) lockconformance.Side { return waitState(c, c.Read, true) }

func write(c *core.Client) lockconformance.Side { return waitState(c, c.Write, false) }

func fairRead(c *core.Client) lockconformance.Side { return waitState(c, c.FairRead, true) }

func fairWrite(c *core.Client) lockconformance.Side { return waitState(c, c.FairWrite, false) }

// semaphore has one permit, so that its holders exclude each other.
func semaphore(c *core.Client) lockconformance.Side { return waitState(c, c.Limit(1), false) }

// permits are shared by more holders than the suite has.
func permits(c *core.Client) lockconformance.Side { return waitState(c, c.Limit(100), true) }

// atOnce is a Multi that one script grants.
func atOnce(c *core.Client) lockconformance.Side {
	return lockconformance.Side{Members: 2, Strategy: func(name string, opts ...core.LockOption) *core.Lock {
		return core.Multi(c.Mutex(name+" too", opts...), c.Mutex(name, opts...))
	}}
}

// oneByOne is a Multi whose members are locked one after the other.
func oneByOne(c *core.Client) lockconformance.Side {
	s := fair(c)
	s.Members, s.Strategy = 2, func(name string, opts ...core.LockOption) *core.Lock {
		return core.Multi(c.Write(name+" too", opts...), c.Fair(name, opts...))
	}
	return s
}

// pair is two strategies that meet on one name, or one twice, and what its names in Redis begin with.
type pair struct {
	lock, rival side
	Prefix      string
	Again       bool // another pair has the same lock
}

// Pairs are every strategy, and those that meet on one name both ways round. Some have names of one slot of a Cluster, by a
// hash tag.
var Pairs = map[string]pair{
	"Mutex":                  {lock: mutex, rival: mutex},
	"Fair":                   {lock: fair, rival: fair},
	"ReadAndWrite":           {lock: read, rival: write},
	"WriteAndRead":           {lock: write, rival: read, Prefix: "{lock}:"},
	"FairReadAndFairWrite":   {lock: fairRead, rival: fairWrite},
	"FairWriteAndFairRead":   {lock: fairWrite, rival: fairRead, Prefix: "{lock}:"},
	"MutexAndFair":           {lock: mutex, rival: fair, Prefix: "{lock}:", Again: true},
	"FairAndMutex":           {lock: fair, rival: mutex, Prefix: "{lock}:", Again: true},
	"MutexAndRead":           {lock: mutex, rival: read, Again: true},
	"ReadAndMutex":           {lock: read, rival: mutex, Prefix: "{lock}:", Again: true},
	"Semaphore":              {lock: semaphore, rival: semaphore},
	"PermitsAndWrite":        {lock: permits, rival: write, Prefix: "{lock}:"},
	"MultiAtOnceAndMutex":    {lock: atOnce, rival: mutex},
	"MultiOneByOne":          {lock: oneByOne, rival: oneByOne, Again: true},
	"MultiOneByOneOfOneSlot": {lock: oneByOne, rival: mutex, Prefix: "{lock}:"},
}

// On makes a pair a subject that lives on one server, or on a deployment.
func (p pair) On(d *lockconformance.Deployment) lockconformance.Subject {
	s := lockconformance.Subject{Deployment: d, Prefix: p.Prefix}
	if d == nil {
		s.Servers = 1
	}
	s.Connect = func(clients []redis.UniversalClient, opts ...core.Option) (lockconformance.Pair, io.Closer, error) {
		c, err := core.New(clients[0], opts...)
		if err != nil {
			return lockconformance.Pair{}, nil, err
		}
		return lockconformance.Pair{Lock: p.lock(c), Rival: p.rival(c)}, c, nil
	}
	return s
}

// OnMasters is a Redlock as a subject.
func OnMasters(n int) lockconformance.Subject {
	return lockconformance.Subject{
		Servers:  n,
		Patience: []core.Option{core.WithNodeTimeout(Within)},
		Connect: func(clients []redis.UniversalClient, opts ...core.Option) (lockconformance.Pair, io.Closer, error) {
			// Each server has time enough to answer on a busy machine.
			r, err := core.NewRedlock(clients, append([]core.Option{core.WithNodeTimeout(time.Second)}, opts...)...)
			if err != nil {
				return lockconformance.Pair{}, nil, err
			}
			side := lockconformance.Side{Strategy: r.Mutex}
			return lockconformance.Pair{Lock: side, Rival: side}, r, nil
		},
	}
}

// Strategies returns all strategies of a client, by name.
func Strategies(c *core.Client) map[string]core.Strategy {
	return map[string]core.Strategy{
		"Mutex": c.Mutex, "Fair": c.Fair, "Read": c.Read, "Write": c.Write,
		"FairRead": c.FairRead, "FairWrite": c.FairWrite, "Semaphore": c.Limit(1),
	}
}

// EnterEveryWay locks a name, enters again, prolongs, and lets one caller wait and another one give up.
func EnterEveryWay(t testing.TB, name string, lock, other core.Strategy) {
	t.Helper()
	ctx := context.Background()
	outer := MustLock(t, lock(name), core.WithTTL(3*time.Second))
	inner := MustLockWith(t, outer.Context(), lock(name))
	if err := inner.Extend(ctx, 5*time.Second); err != nil {
		t.Errorf("%s: extend: %v", name, err)
	}
	waiting := LockLater(other(name))
	if lease, err := other(name).Lock(ctx, core.WithWait(10*time.Millisecond)); err == nil {
		Unlock(t, lease) // a reader beside a reader
	}
	Unlock(t, inner)
	Unlock(t, outer)
	if err := Receive(t, waiting); err != nil {
		t.Errorf("%s: waiter: %v", name, err)
	}
}

// OnlyQueued returns the strategies whose waiters stand in a line.
func OnlyQueued(c *core.Client) map[string]core.Strategy {
	all := Strategies(c)
	delete(all, "Mutex")
	return all
}

func Exclusives(c *core.Client) map[string]core.Strategy {
	return map[string]core.Strategy{"Mutex": c.Mutex, "Fair": c.Fair, "Write": c.Write, "FairWrite": c.FairWrite}
}

// Locks are one of each kind.
func Locks(c *core.Client) map[string]*core.Lock {
	all := map[string]*core.Lock{
		"all at once":   core.Multi(c.Mutex("all at once"), c.Mutex("and this")),
		"one after one": core.Multi(c.Write("one after one"), c.Mutex("that too")),
	}
	for kind, strategy := range Strategies(c) {
		all[kind] = strategy(kind)
	}
	return all
}
