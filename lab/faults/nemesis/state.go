package nemesis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// stateFaults make servers forget, or set their clocks.
var stateFaults = []fault{
	server(25, "killed and restarted, without persistence", killServers, 0, 1.5).only(inMemory).losing(always("restart without persistence")),
	server(34, "flushed", flush, 0, 0.2).only(forgetful).losing(always("FLUSHALL")),
	server(34, "key deleted", deleteKey, 0, 0.2).only(forgetful).losing(always("DEL")),
	server(34, "lock forced", force, 0, 0.2).only(forgetful).losing(always("ForceUnlock")),
	server(35, "keys evicted", evict, 0.1, 0.5).only(persistentOrNot).losing(always("eviction")),
	server(38, "server's clock put forward", forward, 0, 0.5).only(settable).losing(always("clock put forward")),
	server(39, "server's clock set back", back, 0, 0.5).only(settable),
}

var flush = each(func(n *Nemesis, s int) bool { return n.do(s, "flushall") }, nothing)

func deleteKey(n *Nemesis) func() {
	s, ok := n.master()
	if !ok || !n.do(s, "del", n.key()) {
		return nil
	}
	return func() {}
}

// force takes a lock from its holders, as an operator does.
func force(n *Nemesis) func() {
	s, ok := n.master()
	if !ok {
		return nil
	}
	locks, err := core.New(n.d.Admin(s), core.WithLogger(nil))
	if err != nil {
		return nil
	}
	defer locks.Close()
	if held, err := locks.ForceUnlock(context.Background(), names[n.random.IntN(len(names))]); !held || err != nil {
		return nil
	}
	return func() {}
}

// evict fills a server that may evict anything.
func evict(n *Nemesis) func() {
	const fillers = 400
	admin, ctx := n.d.Admin(0), context.Background()
	limit := fmt.Sprint(used(admin.Info(ctx, "memory").Val()) + 100_000)
	if !n.do(0, "config", "set", "maxmemory-policy", "allkeys-random") || !n.do(0, "config", "set", "maxmemory", limit) {
		return nil
	}
	for i := range fillers {
		_ = admin.Set(ctx, fmt.Sprint("filler:", i), strings.Repeat("x", 1000), 10*time.Second).Err()
	}
	return func() {
		n.insist(func() bool { return n.do(0, "config", "set", "maxmemory", "0") })
		n.insist(func() bool { return n.do(0, "config", "set", "maxmemory-policy", "noeviction") })
	}
}

func used(info string) (bytes int64) {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
			_, _ = fmt.Sscan(text, &bytes)
		}
	}
	return bytes
}

// forward and back set the clock of a server, and leave it so.
func forward(n *Nemesis) func() { return n.shift(n.d.Shift.By() + time.Second + n.upTo(time.Minute)) }

func back(n *Nemesis) func() { return n.shift(n.d.Shift.By() - time.Second - n.upTo(10*time.Minute)) }

// shift sets the clock between two commands: before Redis 7.2, a script in which the clock is set back may find that a
// lock has expired, see docs/guarantees.md.
func (n *Nemesis) shift(to time.Duration) func() {
	if to.Abs() > time.Hour || !n.do(0, "client", "pause", "1000", "write") {
		return nil
	}
	defer n.insist(func() bool { return n.do(0, "client", "unpause") })
	if n.d.Shift.Set(to) != nil {
		return nil
	}
	return func() {}
}
