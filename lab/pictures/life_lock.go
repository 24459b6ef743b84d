package main

import "github.com/holdfast-go/holdfast/internal/svg"

// lifeOfLock draws what Lock, the renewals and Unlock of a Mutex pass.
func lifeOfLock() *svg.Picture {
	l := &life{Picture: svg.New(1036, "The life of a lock",
		"Lock passes core, the local list of waiters, script, and transport with its direct path or its batch queue, to "+
			"Redis. If the lock is held, the caller subscribes and waits for a message or the next poll, and asks again. If it "+
			"is granted, keepalive renews the lease each third of the TTL. Unlock takes the lease out of keepalive, and then "+
			"releases the lock by the same way. Redis publishes the number of one waiting client, which asks next.")}
	l.part("Lock")
	l.step(svg.Plain, "core", "checks name, options, re-entry; calls hooks")
	l.step(svg.Plain, "acquire", "local list of the name: its first waiter asks")
	ask := l.step(svg.Plain, "script", "Acquire: one request, acquire.lua")
	l.fork(
		branch{tone: svg.Plain, actor: "transport: direct path", lines: []string{
			"one server, quick lately, no", "other command in flight: sent", "on the goroutine of the caller",
		}},
		branch{tone: svg.Plain, actor: "transport: batch queue", lines: []string{
			"otherwise, or no answer in", "100 ms: a free sender sends up", "to 256 commands at a time",
		}},
	)
	l.step(svg.Held, "Redis", "grants with a token, or answers how long", "the lease of the holder has left")
	top, bottom := l.fork(
		branch{tone: svg.Wait, actor: "transport: held", end: true, lines: []string{
			"subscribe, then ask again after", "a message, 1 to 2 s, or the end", "of the lease of the holder",
		}},
		branch{tone: svg.Good, actor: "keepalive: granted", lines: []string{
			"Add: valid for the TTL less", "the drift, counted from before", "the request was sent",
		}},
	)
	l.back((top+bottom)/2, ask)
	l.step(svg.Good, "core", "Lock returns the Lease")

	l.part("While the caller works")
	timer := l.step(svg.Plain, "keepalive", "timer: RenewAll, a third of the TTL after", "the last grant or renewal was sent")
	l.step(svg.Plain, "script", "renew.lua, one command for each lease")
	l.back(l.step(svg.Plain, "transport", "a batch queue for renewals only"), timer)

	l.part("Unlock")
	l.step(svg.Plain, "keepalive", "Remove: nothing renews the lease any more")
	l.step(svg.Plain, "core", "the context ends with ErrNotHeld; hooks")
	l.step(svg.Plain, "script", "Release: release.lua")
	l.step(svg.Plain, "transport", "detached: sent even if ctx has ended;", "not confirmed: Pending sends it again")
	l.step(svg.Held, "Redis", "frees the lock, and publishes the number", "of one waiting client")
	l.step(svg.Good, "transport", "of that client: its first waiter asks again")
	return l.Picture
}
