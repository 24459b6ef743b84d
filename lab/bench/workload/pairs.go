package workload

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

// PairSizes are the numbers of goroutines that lock and unlock names of their own.
var PairSizes = []int{1, 64, 512}

// stuck is how long a pair may take: longer only if it never ends.
const stuck = 20 * time.Second

// WorkPairs is the workload of [Bench.Pairs] in the book.
const WorkPairs = "pairs"

// Pairs measures a lock and unlock of free names.
func (b *Bench) Pairs(ctx context.Context) error {
	players, closeAll, err := b.open(1, func(c contestant.Contestant) bool { return c.Uncontended })
	if err != nil {
		return err
	}
	defer closeAll()
	for _, size := range PairSizes {
		rounds, each := b.PairRounds, b.PairTime
		if size == 1 {
			// Where the scheduler puts one goroutine and the server decides a round, by a third of its time: only many short
			// rounds even that out.
			rounds, each = b.LoneRounds, b.LoneTime
		}
		b.logf("pairs: %d goroutines, %d rounds of %d contestants", size, rounds, len(players))
		err := turns(ctx, players, rounds, func(p player, round int) error {
			return b.pairRound(ctx, p, size, each, round > 0)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pairRound lets goroutines lock and unlock until the time is over. The garbage of the contestant before is collected
// first.
func (b *Bench) pairRound(ctx context.Context, p player, size int, each time.Duration, counts bool) error {
	const room = 1 << 16
	took := make([][]time.Duration, size)
	for i := range took {
		took[i] = make([]time.Duration, 0, room/size+64) // growing would count as the contestant's
	}
	errs := make([]error, size)
	// Not a deadline, of which some contestants would make their TTL.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(each+stuck, stop).Stop()
	runtime.GC()
	server := b.load(p)
	memory := measure.Allocations()
	began := time.Now()
	var all sync.WaitGroup
	for i := range size {
		all.Go(func() {
			took[i], errs[i] = pairsUntil(ctx, p.sessions[0], fmt.Sprint("pair", p.number, "-", i), began.Add(each), took[i])
		})
	}
	all.Wait()
	elapsed := time.Since(began)
	memory = measure.Allocations().Since(memory)
	server = b.load(p).Since(server)
	var times []time.Duration
	for i := range took {
		if errs[i] != nil {
			return errs[i]
		}
		times = append(times, took[i]...)
	}
	if counts {
		b.addPairs(p, size, times, elapsed, server, memory)
	}
	return nil
}

func pairsUntil(
	ctx context.Context, s contestant.Session, name string, end time.Time, took []time.Duration,
) ([]time.Duration, error) {
	for now := time.Now(); now.Before(end); {
		if err := s.Pair(ctx, name); err != nil {
			return took, err
		}
		after := time.Now()
		took = append(took, after.Sub(now))
		now = after
	}
	return took, nil
}

func (b *Bench) addPairs(
	p player, size int, times []time.Duration, elapsed time.Duration, server measure.Load, memory measure.Allocated,
) {
	n, us := float64(len(times)), measure.Microseconds(times)
	for figure, value := range map[string]float64{
		"pairs/s": n / elapsed.Seconds(), "p50 us": measure.Quantile(us, 0.5), "p99 us": measure.Quantile(us, 0.99),
		"allocs": float64(memory.Objects) / n, "bytes": float64(memory.Bytes) / n,
		"commands": server.Commands / n, "server us": server.Usec / n,
	} {
		b.Book.Add(measure.Key{Work: WorkPairs, Who: p.Name, Size: size, Figure: figure}, value)
	}
}

// load sums up what all servers of a player were asked.
func (b *Bench) load(p player) (sum measure.Load) {
	for _, server := range b.Servers[:p.Servers] {
		l := measure.Loads(server, p.Sends)
		sum.Commands += l.Commands
		sum.Usec += l.Usec
	}
	return sum
}
