package main

import "github.com/holdfast-go/holdfast/internal/svg"

// lifeOfLoss draws how a lease is lost, and what follows.
func lifeOfLoss() *svg.Picture {
	l := &life{Picture: svg.New(672, "The life of a lost lease",
		"A renewal that succeeds moves the validity forward. Without an answer it is sent again, until the validity ends and "+
			"the lease has expired. If Redis answers that the hold is gone or replaced, the lease is lost at once. keepalive "+
			"takes the entry out of its heap. core ends the context of the lease first, then releases the hold in the "+
			"background, and then writes the log line and calls the hook. Redis frees the lock and refuses late requests of the hold.")}
	l.part("A renewal is due")
	timer := l.step(svg.Plain, "keepalive", "timer: takes what is due from its heap")
	l.step(svg.Plain, "script", "RenewAll: renew.lua for each lease")
	l.step(svg.Plain, "transport", "a batch queue for renewals only")
	top, bottom := l.fork(
		branch{tone: svg.Wait, actor: "no answer", lines: []string{
			"again TTL/6 later,", "sooner after an", "error, until the", "validity ends", "(Expired)",
		}},
		branch{tone: svg.Bad, actor: "no hold", lines: []string{
			"Redis has another", "holder (Replaced)", "or none (Gone)",
		}},
		branch{tone: svg.Good, actor: "renewed", end: true, lines: []string{
			"valid for the TTL", "less the drift,", "from before the", "request was sent", "No loss",
		}},
	)
	l.back((top+bottom)/2, timer)
	l.step(svg.Plain, "keepalive", "takes the entry out of the heap: a loss,", "Unlock and Close exclude each other")
	l.step(svg.Bad, "core", "1. End: the context of the lease ends with", "ErrLeaseLost, so the holder stops")
	l.step(svg.Plain, "core", "2. Lost: release in the background; then", "the log line and Hooks.Lost")
	l.step(svg.Plain, "transport", "Pending: release.lua, again until Redis", "confirms, for TTL and 10 minutes at most")
	l.step(svg.Held, "Redis", "frees the lock if it has the hold; refuses", "requests of the hold that arrive late")
	l.Note(lifeLeft, l.y+24, svg.Start, "WithMaxHold, Abandon: no release. The TTL expires in Redis.")
	return l.Picture
}
