package nemesis

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// linkFaults break the links between workers and servers.
var linkFaults = []fault{
	link(1, "reply to acquire lost", lose(acquiring, testkit.Silent), 0.2, 1.5),
	link(2, "reply to acquire cut off", lose(acquiring, testkit.Closed), 0.1, 0.5),
	link(3, "request lost", broken(func(r *testkit.Relay) { r.Drop(testkit.ToServer) }), 0.1, 1),
	link(3, "request cut off", broken(func(r *testkit.Relay) { r.CutAfter(testkit.ToServer, 0) }), 0.1, 0.5),
	link(4, "request arrives after it was given up", broken(func(r *testkit.Relay) { r.Hold(testkit.ToServer) }), 1, 3.5),
	link(5, "acquire overtaken by its release", delay(acquiring), 1, 3.5),
	link(6, "reply to renew lost", lose(renewing, testkit.Silent), 0.3, 1.5),
	link(7, "reply to release lost", lose(releasing, testkit.Silent), 0.2, 1.5),
	link(7, "reply to release cut off", lose(releasing, testkit.Closed), 0.1, 0.5),
	link(8, "renew arrives late", delay(renewing), 1, 3),
	link(9, "slow link", slow, 0.5, 2),
	link(10, "silent blackhole", broken(func(r *testkit.Relay) { r.Drop(testkit.Both) }), 0.3, 2.5),
	link(10, "connections reset", broken((*testkit.Relay).Reset), 0, 0.2),
	link(12, "fragmented replies", broken(func(r *testkit.Relay) { r.Slice(testkit.ToClient, 3) }), 0.5, 2),
	link(32, "old connections silently dead", broken(func(r *testkit.Relay) { r.DropExisting(testkit.ToClient) }), 0.5, 3),
}

// relays chooses the links to break: of one worker or of all, to some servers or to all. Those of a Redlock to three
// servers at most.
func (n *Nemesis) relays() (chosen []*testkit.Relay) {
	worker := n.random.IntN(n.fleet.Size())
	if n.random.IntN(2) == 0 {
		worker = -1
	}
	if n.d.Acknowledging() == 0 && len(n.d.Servers) < 5 || n.random.IntN(4) == 0 {
		return n.d.Links(worker, -1)
	}
	for _, server := range n.victims() {
		chosen = append(chosen, n.d.Links(worker, server)...)
	}
	return chosen
}

// broken does the same to all links that are chosen.
func broken(how func(r *testkit.Relay)) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		chosen := n.relays()
		for _, r := range chosen {
			how(r)
		}
		return func() { healAll(chosen) }
	}
}

func healAll(relays []*testkit.Relay) {
	for _, r := range relays {
		r.Heal()
	}
}

// lose lets replies to some scripts get lost.
func lose(scripts []string, how testkit.LossMode) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		chosen := n.relays()
		for _, r := range chosen {
			for _, sha := range scripts {
				r.LoseReplies(sha, 1+n.random.IntN(3), how)
			}
		}
		return func() { healAll(chosen) }
	}
}

// delay keeps requests for some scripts back, each on its connection only, so that what is sent later on another one
// arrives earlier.
func delay(scripts []string) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		chosen := n.relays()
		by := n.ttl/2 + n.upTo(2*n.ttl)
		var left atomic.Int64
		left.Store(10)
		for _, r := range chosen {
			r.OnRequest(func(chunk []byte) {
				text := bytes.ToLower(chunk)
				for _, sha := range scripts {
					if bytes.Contains(text, []byte(sha)) && left.Add(-1) >= 0 {
						time.Sleep(by)
						return
					}
				}
			})
		}
		return func() {
			for _, r := range chosen {
				r.OnRequest(nil)
			}
		}
	}
}

func slow(n *Nemesis) func() {
	chosen := n.relays()
	by := n.ttl/20 + n.upTo(6*n.ttl/5)
	for _, r := range chosen {
		r.Delay(testkit.Both, by)
	}
	return func() { healAll(chosen) }
}

// The scripts by their hashes, which is what requests carry.
var (
	acquiring = hashes(luasource.Acquire, luasource.QueueAcquire,
		[]string{"once/begin_fast", "once/common", "once/group", "once/begin"})
	renewing  = hashes([]string{"renew"}, []string{"once/common", "once/renew"})
	releasing = hashes(luasource.Release, luasource.QueueRelease,
		[]string{
			"once/complete_fast", "publish", "once/common", "once/group", "once/finish_common", "once/finish",
		})
)

func hashes(scripts ...[]string) (all []string) {
	for _, files := range scripts {
		all = append(all, luasource.Script(files...).Hash())
	}
	return all
}
