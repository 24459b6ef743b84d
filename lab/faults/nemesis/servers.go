package nemesis

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// serverFaults keep servers from answering, or make them refuse, without a loss of what they know.
var serverFaults = []fault{
	server(11, "connections half closed", halfClose, 0.3, 1.5),
	server(14, "too many clients", tooMany, 0.3, 1),
	server(26, "killed and restarted, with AOF", killServers, 0, 1.5).only(onDisk),
	server(27, "frozen", freeze, 0.1, 2.5).only(noReplicas),
	server(27, "frozen for a moment", freeze, 0.1, 0.8).only(replicated),
	server(28, "busy with a script", busy, 0.1, 0.6),
	server(29, "scripts forgotten", forgetScripts, 0, 0.3),
	server(30, "clients paused", pauseClients, 0.1, 1),
	server(31, "connections killed", killClients("normal"), 0, 0.2),
	server(31, "subscriptions killed", killClients("pubsub"), 0, 0.2),
	server(33, "subscribers overflow", overflow, 0.1, 0.5).only(oneServer),
	server(36, "memory full", configured("maxmemory", "1", "0"), 0.3, 2),
	server(37, "cannot save, refuses writes", misconf, 0.3, 1.5).only(inMemory),
	server(40, "key of another type", wrongType, 0.3, 1).only(forgetful),
	server(41, "command not allowed", notAllowed, 0.2, 1),
	server(52, "demoted: read only", readOnly, 0.2, 1.5).only(noReplicas),
}

// each does something to all victims and, at the end, something else. It is not done if none of them obeys.
func each(begin, end func(n *Nemesis, server int) bool) func(n *Nemesis) func() {
	return func(n *Nemesis) func() {
		var struck []int
		for _, s := range n.victims() {
			if begin(n, s) {
				struck = append(struck, s)
			}
		}
		if struck == nil {
			return nil
		}
		return func() {
			for _, s := range struck {
				n.insist(func() bool { return end(n, s) })
			}
		}
	}
}

// insist repeats what must succeed in the end, so that nothing stays broken.
func (n *Nemesis) insist(do func() bool) {
	n.t.Helper()
	testkit.Eventually(n.t, 30*time.Second, "a fault to be healed", do)
}

func nothing(*Nemesis, int) bool { return true }

// configured sets a directive, and then sets it back.
func configured(name, bad, good string) func(n *Nemesis) func() {
	return each(
		func(n *Nemesis, s int) bool { return n.do(s, "config", "set", name, bad) },
		func(n *Nemesis, s int) bool { return n.do(s, "config", "set", name, good) })
}

// halfClose lets the server close connections whose end does not reach the workers.
func halfClose(n *Nemesis) func() {
	var chosen []*testkit.Relay
	for _, s := range n.victims() {
		for _, r := range n.d.Links(-1, s) {
			r.Hold(testkit.ToClient)
			chosen = append(chosen, r)
		}
		n.do(s, "client", "kill", "type", "normal")
	}
	return func() { healAll(chosen) }
}

// tooMany lets no new connections in and ends the present ones.
var tooMany = each(
	func(n *Nemesis, s int) bool {
		done := n.do(s, "config", "set", "maxclients", "1")
		for _, r := range n.d.Links(-1, s) {
			r.Reset()
		}
		return done
	},
	func(n *Nemesis, s int) bool { return n.do(s, "config", "set", "maxclients", "10000") })

var killServers = each(
	func(n *Nemesis, s int) bool { n.d.Servers[s].Kill(); return true },
	func(n *Nemesis, s int) bool { n.d.Servers[s].Restart(); return true })

var freeze = each(
	func(n *Nemesis, s int) bool { n.d.Servers[s].Pause(); return true },
	func(n *Nemesis, s int) bool { n.d.Servers[s].Resume(); return true })

// busy runs a script without an end, on a connection of its own.
var busy = each(
	func(n *Nemesis, s int) bool {
		if !n.do(s, "config", "set", "busy-reply-threshold", "20") {
			return false
		}
		go func() {
			_ = n.d.Admin(s).Do(context.Background(), "eval", "while true do end", "0").Err() // ends by SCRIPT KILL
		}()
		time.Sleep(30 * time.Millisecond)
		return true
	},
	func(n *Nemesis, s int) bool {
		err := n.d.Admin(s).ScriptKill(context.Background()).Err()
		return err == nil || strings.HasPrefix(err.Error(), "NOTBUSY")
	})

var forgetScripts = each(
	func(n *Nemesis, s int) bool { return n.do(s, "script", "flush") },
	func(n *Nemesis, s int) bool { return n.do(s, "script", "flush") })

var pauseClients = each(
	func(n *Nemesis, s int) bool {
		return n.do(s, "client", "pause", "5000", []string{"write", "all"}[n.random.IntN(2)])
	},
	func(n *Nemesis, s int) bool { return n.do(s, "client", "unpause") })

func killClients(kind string) func(n *Nemesis) func() {
	return each(func(n *Nemesis, s int) bool { return n.do(s, "client", "kill", "type", kind) }, nothing)
}

// overflow sends subscribers more than the server keeps for them: what they get next is the end.
var overflow = each(
	func(n *Nemesis, s int) bool {
		done := n.do(s, "config", "set", "client-output-buffer-limit", "pubsub 1000 1000 1")
		for _, name := range []string{"lock:b", "lock:d", "lock:f"} {
			n.do(s, "publish", "redisson_lock__channel:{"+name+"}", strings.Repeat("x", 1<<18))
		}
		return done
	},
	func(n *Nemesis, s int) bool {
		return n.do(s, "config", "set", "client-output-buffer-limit", "pubsub 33554432 8388608 60")
	})

// misconf makes the server save where nothing can be written, after which it takes no writes.
func misconf(n *Nemesis) func() {
	dir := n.d.Admin(0).ConfigGet(context.Background(), "dir").Val()["dir"]
	if dir == "" || !n.do(0, "config", "set", "dir", "/proc/self") || !n.do(0, "config", "set", "save", "3600 1") {
		return nil
	}
	n.do(0, "bgsave")
	return func() {
		n.insist(func() bool { return n.do(0, "config", "set", "save", "") && n.do(0, "config", "set", "dir", dir) })
	}
}

// strangers are locks whose key is put to another use, if it is free.
var strangers = []string{"lock:b", "lock:d", "lock:e"}

const (
	usurp = `if redis.call('exists', KEYS[1]) == 0 then
		redis.call('lpush', KEYS[1], 'x') return redis.call('pexpire', KEYS[1], 3000) end return 0`
	restore = `if redis.call('type', KEYS[1]).ok == 'list' then redis.call('del', KEYS[1]) end return 1`
)

func wrongType(n *Nemesis) func() {
	s, ok := n.master()
	if !ok {
		return nil
	}
	key := strangers[n.random.IntN(len(strangers))]
	for range 200 {
		if taken, _ := n.d.Admin(s).Eval(context.Background(), usurp, []string{key}).Int(); taken == 1 {
			return func() { n.do(s, "eval", restore, 1, key) }
		}
		time.Sleep(time.Millisecond)
	}
	return nil // never free
}

// notAllowed takes a command away from the user, which scripts meet in the middle of what they do.
func notAllowed(n *Nemesis) func() {
	command := []string{"hset", "set", "pexpire", "time", "publish", "del"}[n.random.IntN(6)]
	return each(
		func(n *Nemesis, s int) bool { return n.do(s, "acl", "setuser", "default", "-"+command) },
		func(n *Nemesis, s int) bool { return n.do(s, "acl", "setuser", "default", "+@all") })(n)
}

// readOnly makes the server a replica of nobody.
var readOnly = each(
	func(n *Nemesis, s int) bool { return n.do(s, "replicaof", "127.0.0.1", "1") },
	func(n *Nemesis, s int) bool { return n.do(s, "replicaof", "no", "one") })
