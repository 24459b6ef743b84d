package nemesis

import (
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// rowClock is the clock of a fault that takes workers that were built for it.
const rowClock = 20

// workerFaults break the processes that hold locks.
var workerFaults = []fault{
	process(13, "connection pool used up", told(worker.Hog), 0.1, 0.3),
	process(17, "worker killed", killWorker, 0, 1),
	process(18, "worker stopped", stopWorker, 0.3, 3),
	process(rowClock, "worker's wall clock set", setClock, 0.3, 1.5),
	process(21, "worker starved", told(worker.Burn), 0.1, 0.3),
}

// some chooses one worker, or now and then half of them.
func (n *Nemesis) some() []int {
	count := 1
	if n.random.IntN(3) == 0 {
		count = n.fleet.Size() / 2
	}
	return n.random.Perm(n.fleet.Size())[:count]
}

func killWorker(n *Nemesis) func() {
	chosen := n.some()
	for _, w := range chosen {
		n.fleet.Kill(w)
	}
	return func() {
		for _, w := range chosen {
			n.fleet.Restart(w)
		}
	}
}

func stopWorker(n *Nemesis) func() {
	chosen := n.some()
	for _, w := range chosen {
		n.fleet.Stop(w)
	}
	return func() {
		for _, w := range chosen {
			n.fleet.Resume(w)
		}
	}
}

// told lets a worker do something to itself, which ends by itself.
func told(do string) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		d := n.ttl/2 + n.upTo(n.ttl)
		for _, w := range n.some() {
			n.fleet.Tell(w, worker.Command{Do: do, For: d})
		}
		return func() { time.Sleep(d) }
	}
}

// setClock sets wall clocks by up to a day in either direction, and back.
func setClock(n *Nemesis) func() {
	chosen := n.some()
	for _, w := range chosen {
		n.fleet.Tell(w, worker.Command{Do: worker.Clock, For: n.upTo(48*time.Hour) - 24*time.Hour})
	}
	return func() {
		for _, w := range chosen {
			n.fleet.Tell(w, worker.Command{Do: worker.Clock})
		}
	}
}
