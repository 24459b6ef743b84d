package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

// sample is what a run has done, and what it has cost.
type sample struct {
	done    map[string]float64 // operations, by work
	seconds float64
	servers []measure.Usage
	client  time.Duration // CPU time of this process
}

// operations returns how many there were of all works.
func (s sample) operations() (n float64) {
	for _, done := range s.done {
		n += done
	}
	return n
}

// total returns what all servers have used.
func (s sample) total() (sum measure.Usage) {
	for _, u := range s.servers {
		sum.CPU += u.CPU
		sum.Commands += u.Commands
		sum.Reads += u.Reads
		sum.In += u.In
		sum.Out += u.Out
		sum.Memory += u.Memory
		sum.Clients += u.Clients
	}
	return sum
}

// utilisation is the utilisation of the busiest server.
func (s sample) utilisation() (most float64) {
	for _, u := range s.servers {
		most = max(most, u.CPU.Seconds()/s.seconds)
	}
	return most
}

// point is the load of the only server.
func (s sample) point() point { return point{s.utilisation(), s.total().Commands / s.seconds} }

// watch samples what the servers do while run runs.
func (s *site) watch(ctx context.Context, run func() (map[string]float64, error)) (taken sample, err error) {
	client := measure.OwnCPUTime()
	before, err := s.usage(ctx)
	if err != nil {
		return taken, err
	}
	if taken.done, err = run(); err != nil {
		return taken, err
	}
	after, err := s.usage(ctx)
	if err != nil {
		return taken, err
	}
	taken.client = measure.OwnCPUTime() - client
	taken.seconds = after[0].At.Sub(before[0].At).Seconds()
	for i, u := range after {
		taken.servers = append(taken.servers, u.Since(before[i]))
	}
	return taken, nil
}

// closed lets callers of each client repeat the work for a time, each on one name after the other. It is as fast as this
// machine permits.
func (f *fleet) closed(ctx context.Context, w work, callers int, limit time.Duration) (sample, error) {
	return f.watch(ctx, func() (map[string]float64, error) {
		var r runs
		end := time.Now().Add(limit)
		for _, client := range f.clients {
			for range callers {
				r.all.Go(func() {
					for time.Now().Before(end) && r.note(w, w.do(ctx, client, f.name(), 0)) {
					}
				})
			}
		}
		return r.wait()
	})
}

// share is a work with its rate.
type share struct {
	work
	perSecond float64
}

// poisson begins operations at random times, independent of each other, on random clients. It uses no ticker for each client,
// because timers of one process end together, and the server would get bursts, which cost it less.
func (f *fleet) poisson(ctx context.Context, mix []share, hold, limit time.Duration) (sample, error) {
	rate := 0.
	for _, s := range mix {
		rate += s.perSecond
	}
	return f.watch(ctx, func() (map[string]float64, error) {
		var r runs
		r.all.Go(func() {
			runtime.LockOSThread() // it sleeps in the kernel, more precisely than with a timer of the runtime
			defer runtime.UnlockOSThread()
			began := time.Now()
			for next := began; next.Sub(began) < limit && ctx.Err() == nil; {
				next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
				sleepUntil(next)
				w, client := pick(mix, rate), f.clients[rand.IntN(len(f.clients))]
				r.all.Go(func() { r.note(w, w.do(ctx, client, f.name(), hold)) })
			}
		})
		return r.wait()
	})
}

func sleepUntil(t time.Time) {
	if wait := time.Until(t); wait > 0 {
		timespec := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&timespec, nil) // a signal may end it early, once in a while
	}
}

// pick returns a work by its share of the rate.
func pick(mix []share, rate float64) work {
	at := rand.Float64() * rate
	for _, s := range mix {
		if at -= s.perSecond; at < 0 {
			return s.work
		}
	}
	return mix[len(mix)-1].work
}

// runs counts operations, and keeps the first error.
type runs struct {
	all  sync.WaitGroup
	mu   sync.Mutex
	done map[string]float64 // by the name of a work
	err  error
}

// note returns true if the operation has succeeded.
func (r *runs) note(w work, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return false
	}
	if r.done == nil {
		r.done = make(map[string]float64)
	}
	r.done[w.name]++
	return true
}

func (r *runs) wait() (map[string]float64, error) {
	r.all.Wait()
	return r.done, r.err
}
