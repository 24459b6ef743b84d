package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/xrate"
	"github.com/holdfast-go/holdfast/lab/permits"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	workPermits = "permits"
	many        = 64 // callers
	processes   = 8
	holdFor     = 2 * time.Millisecond
	loadTTL     = 30 * time.Second
	warmUp      = 100 * time.Millisecond
)

// Names of the semaphores of x/rate, which differ in how soon a caller that was refused asks again.
const (
	rateShort   = "x/rate, asks every 5 ms"
	rateExample = "x/rate, asks after 30 s"
)

// semaphores are the ones that take part in the load, with their names in the table.
func semaphores(tasks *xrate.Tasks) []permits.Contestant {
	return []permits.Contestant{
		permits.Holdfast(),
		xrate.Contestant(rateShort, tasks, xrate.ShortPause),
		xrate.Contestant(rateExample, tasks, xrate.ExamplePause),
	}
}

// load lets one caller and many take permits, all contestants in turn and in another order in each round.
func (s *settings) load(ctx context.Context) error {
	servers, stop := measure.StartServers(2, testkit.TCP())
	defer stop()
	tasks, err := xrate.StartTasks(servers[1].Addr(), many)
	if err != nil {
		return err
	}
	defer tasks.Close()
	all := semaphores(tasks)
	s.logf("load: %d rounds of %d semaphores", s.rounds, len(all))
	for round := range s.rounds + 1 {
		for _, i := range rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(all)) {
			for _, size := range []int{1, many} {
				if err := s.contend(ctx, servers[0], all[i], size, round); err != nil {
					return fmt.Errorf("%s: %d callers: %w", all[i].Name, size, err)
				}
			}
		}
	}
	return nil
}

// contend is a round of one contestant. Round 0 does not count.
func (s *settings) contend(ctx context.Context, server *testkit.Server, c permits.Contestant, size, round int) error {
	contest := permits.Contest{Callers: size, Length: s.alone}
	open := 1
	if size > 1 {
		contest.Length, contest.Hold, open = s.contest, holdFor, processes
	}
	var all []permits.Process
	defer func() {
		for _, p := range all {
			_ = p.Close() // nothing depends on it any more
		}
	}()
	for range open {
		p, err := c.Open(permits.Config{
			Addr: server.Addr(), Name: fmt.Sprintf("load-%d-%d", size, round), N: permits.N, TTL: loadTTL,
		})
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	// One caller of each process connects first. More would leave callers of x/rate asleep.
	warm := permits.Contest{Callers: open, Length: warmUp}
	if _, err := warm.Run(ctx, all); err != nil {
		return err
	}
	before := measure.Loads(server, c.Sends)
	got, err := contest.Run(ctx, all)
	if err != nil || round == 0 {
		return err
	}
	add := func(figure string, value float64) {
		s.book.Add(measure.Key{Work: workPermits, Who: c.Name, Size: size, Figure: figure}, value)
	}
	waits := measure.Microseconds(got.Waits)
	add("grants/s", float64(got.Grants)/got.Took.Seconds())
	add("commands", measure.Loads(server, c.Sends).Since(before).Commands/float64(got.Grants))
	add("wait p50 us", measure.Quantile(waits, 0.5))
	add("wait p99 us", measure.Quantile(waits, 0.99))
	add("wait longest us", measure.Quantile(waits, 1))
	return nil
}
