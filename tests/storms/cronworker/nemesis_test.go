//go:build unix

package cronworker_test

import (
	"math/rand/v2"
	"time"
)

// nemesis stops, resumes, kills and restarts replicas at random.
type nemesis struct {
	fleet   *fleet
	rand    *rand.Rand
	until   map[*member]time.Time // when one that is down comes back
	stops   int
	kills   int
	guards  [2]*member // who are left alone
	changed time.Time  // the guards
}

// watchFor is how long a guard has to be there before the one before it may be taken away: until it can be counted on
// for ticks, with any difference of their clocks.
const watchFor = 10 * time.Second

// rage continues for so long. At any time at least one replica has been left alone for a while, another one each time.
func (n *nemesis) rage(d time.Duration) {
	n.until = make(map[*member]time.Time)
	n.guards = [2]*member{n.fleet.members[0], n.fleet.members[0]}
	for end := time.Now().Add(d); time.Now().Before(end); n.fleet.watch(n.upTo(300 * time.Millisecond)) {
		if time.Since(n.changed) > watchFor {
			n.guards[0] = n.guards[1]
			n.guards[1] = n.fleet.members[n.rand.IntN(len(n.fleet.members))]
			n.changed = time.Now()
			n.bringBack(n.guards[1])
		}
		for _, m := range n.fleet.members {
			if back, down := n.until[m]; down && time.Now().After(back) {
				n.bringBack(m)
			}
		}
		n.strike(n.fleet.members[n.rand.IntN(len(n.fleet.members))])
	}
	for _, m := range n.fleet.members {
		n.bringBack(m)
	}
}

func (n *nemesis) upTo(d time.Duration) time.Duration { return time.Duration(n.rand.Int64N(int64(d))) }

func (n *nemesis) strike(m *member) {
	if _, down := n.until[m]; down || m == n.guards[0] || m == n.guards[1] {
		return
	}
	if n.rand.IntN(2) == 0 {
		m.stop()
		n.stops++
		n.until[m] = time.Now().Add(n.upTo(5 * time.Second))
		return
	}
	m.kill()
	n.kills++
	n.until[m] = time.Now().Add(n.upTo(2 * time.Second))
}

func (n *nemesis) bringBack(m *member) {
	if _, down := n.until[m]; !down {
		return
	}
	delete(n.until, m)
	if m.cmd == nil {
		m.start()
		return
	}
	m.resume()
}
