package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

const (
	// WorkContest is the workload of [Bench.Contest], WorkBarging the one of [Bench.Barging], and WorkInside the one of
	// [Bench.Inside].
	WorkContest = "contest"
	WorkBarging = "barging"
	WorkInside  = "inside"
	// Floor is who delivers bare messages and runs bare scripts in the contest.
	Floor = "bare PUBLISH and script"

	// HoldFor is how long the lock is held in a contest.
	HoldFor = 2 * time.Millisecond

	clients = 4 // in a contest, each with connections of its own
)

// ContestSizes are the numbers of waiters.
var ContestSizes = []int{16, 64, 256}

// Contest lets waiters take one name over and over, hold it for 2 ms, and ask again at once.
func (b *Bench) Contest(ctx context.Context) error {
	players, closeAll, err := b.open(clients, func(c contestant.Contestant) bool { return c.Waits && contends(c) })
	if err != nil {
		return err
	}
	defer closeAll()
	floor, err := newFloor(b.Servers[0])
	if err != nil {
		return err
	}
	defer floor.close()
	players = append(players, player{Contestant: contestant.Contestant{Name: Floor, Limit: true}})
	for _, size := range ContestSizes {
		b.logf("contest: %d waiters, %d rounds of %d contestants", size, b.ContestRounds, len(players))
		err := turns(ctx, players, b.ContestRounds, func(p player, round int) error {
			if p.Name == Floor {
				return floor.round(ctx, b.Book, size, round > 0)
			}
			c := contest{player: p, name: fmt.Sprintf("contest-%d-%d", size, round), waiters: size, hold: HoldFor}
			if err := c.run(ctx, b, b.ContestTime); err != nil {
				return err
			}
			if round > 0 {
				c.add(b.Book, WorkContest)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// contends leaves out who is not meant for one name that many want, or not on one server.
func contends(c contestant.Contestant) bool { return c.Servers == 1 && c.Name != "holdfast Write" }

// Barging lets 64 waiters take one name without holding it at all: whoever lets go asks again at once, and is nearest.
func (b *Bench) Barging(ctx context.Context) error { return b.unheld(ctx, WorkBarging, clients) }

// Inside is Barging in one process.
func (b *Bench) Inside(ctx context.Context) error { return b.unheld(ctx, WorkInside, 1) }

// unheld lets 64 waiters of so many clients take one name without holding it.
func (b *Bench) unheld(ctx context.Context, work string, clients int) error {
	players, closeAll, err := b.open(clients, func(c contestant.Contestant) bool { return c.Waits && contends(c) })
	if err != nil {
		return err
	}
	defer closeAll()
	const waiters = 64
	b.logf("%s: %d waiters, %d rounds of %d contestants", work, waiters, b.ContestRounds, len(players))
	return turns(ctx, players, b.ContestRounds, func(p player, round int) error {
		c := contest{player: p, name: fmt.Sprint(work, "-", round), waiters: waiters}
		if err := c.run(ctx, b, b.ContestTime/2); err != nil {
			return err
		}
		if round > 0 {
			c.add(b.Book, work)
		}
		return nil
	})
}

// grant is one turn of a waiter.
type grant struct {
	who                  int
	asked, entered, left time.Time
}

// contest is one round of one contestant.
type contest struct {
	player
	name    string
	waiters int
	hold    time.Duration

	mu     sync.Mutex
	grants []grant
	waits  []time.Duration // also of those that were not granted the lock in time: at least so long
	first  error           // that is not the end of the round

	load measure.Load
	took time.Duration
}

func (c *contest) run(ctx context.Context, b *Bench, limit time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	load, began := b.load(c.player), time.Now()
	var all sync.WaitGroup
	for who := range c.waiters {
		session := c.sessions[who%len(c.sessions)]
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.turn(ctx, session, who); err != nil {
					c.fail(ctx, err)
					return
				}
			}
		})
	}
	select {
	case <-time.After(limit):
	case <-ctx.Done():
	}
	c.load, c.took = b.load(c.player).Since(load), time.Since(began)
	stop()
	all.Wait()
	return c.first
}

func (c *contest) turn(ctx context.Context, s contestant.Session, who int) error {
	g := grant{who: who, asked: time.Now()}
	unlock, err := s.Lock(ctx, c.name)
	g.entered = time.Now()
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waits = append(c.waits, g.entered.Sub(g.asked))
		return err
	}
	if c.hold > 0 {
		time.Sleep(c.hold)
	}
	g.left = time.Now()
	c.mu.Lock()
	c.grants = append(c.grants, g)
	c.waits = append(c.waits, g.entered.Sub(g.asked))
	c.mu.Unlock()
	return unlock(context.WithoutCancel(ctx))
}

func (c *contest) fail(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil && c.first == nil {
		c.first = err
	}
}

func (c *contest) add(book *measure.Book, work string) {
	add := func(figure string, value float64) {
		book.Add(measure.Key{Work: work, Who: c.Name, Size: c.waiters, Figure: figure}, value)
	}
	slices.SortFunc(c.grants, func(x, y grant) int { return x.entered.Compare(y.entered) })
	got := make([]float64, c.waiters)
	var held time.Duration
	var handoffs []time.Duration
	for i, g := range c.grants {
		got[g.who]++
		held += g.left.Sub(g.entered)
		if i > 0 && c.grants[i-1].who != g.who {
			handoffs = append(handoffs, g.entered.Sub(c.grants[i-1].left))
		}
	}
	n, us, waits := float64(len(c.grants)), measure.Microseconds(handoffs), measure.Microseconds(c.waits)
	add("grants/s", n/c.took.Seconds())
	add("handoff p50 us", measure.Quantile(us, 0.5))
	add("handoff p99 us", measure.Quantile(us, 0.99))
	add("utilisation", held.Seconds()/c.took.Seconds())
	add("commands", c.load.Commands/n)
	add("server us", c.load.Usec/n)
	add("jain", measure.Jain(got))
	add("between", float64(len(handoffs))/cmp.Or(n, 1))
	for _, q := range WaitQuantiles {
		add(WaitFigure(q), measure.Quantile(waits, q))
	}
}

// WaitQuantiles are the quantiles of the waiting times that are kept, enough for a curve.
var WaitQuantiles = []float64{
	0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97,
	0.99, 0.995, 1,
}

// WaitFigure is the name of a quantile of the waiting times in the book.
func WaitFigure(q float64) string { return fmt.Sprintf("wait %g us", q) }
