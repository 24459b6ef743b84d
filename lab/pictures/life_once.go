package main

import "github.com/holdfast-go/holdfast/internal/svg"

// lifeOfOnce draws what a call of Once.Do passes.
func lifeOfOnce() *svg.Picture {
	l := &life{Picture: svg.New(858, "The life of a Once",
		"Do begins an attempt by the acquisition loop of a lock. Redis reads the record. A completed record is replayed, a "+
			"running one refuses the call or lets it wait, an unknown outcome refuses it. Otherwise the attempt is granted, fn "+
			"runs and keepalive renews the attempt. Then core completes, releases or holds the attempt. Redis records it, "+
			"unless another attempt has begun. If the lease is lost, the record counts as its outcome on expiry, and Complete "+
			"still works until another attempt begins.")}
	l.part("Begin")
	l.step(svg.Plain, "core", "Do: an acquisition like a lock's, with", "the local list, if it waits")
	ask := l.step(svg.Plain, "script", "Acquire: begin.lua, through transport")
	l.step(svg.Held, "Redis", "reads the record of the key")
	l.answer(svg.Good, "completed", "replay: Do returns the value of the record")
	l.back(l.answer(svg.Wait, "running", "ErrInProgress, or with WithWait ask again"), ask)
	l.answer(svg.Bad, "unknown", "ErrOutcomeUnknown, until Resolve or Forget")
	l.answer(svg.Good, "none, retry", "granted: the number and token of an attempt")

	l.part("While fn runs")
	l.step(svg.Plain, "keepalive", "Add, then RenewAll as for a lock")
	l.step(svg.Plain, "script", "renew.lua: the lease, and the record with it")
	l.answer(svg.Bad, "a loss", "the context of fn ends, nothing is released:", "the lease expires, see outcome on expiry")

	l.part("After fn")
	l.step(svg.Plain, "core", "Complete; after an error or panic Release,", "or Hold with HoldFailures")
	l.step(svg.Plain, "keepalive", "Remove: nothing renews the attempt any more")
	l.step(svg.Plain, "script", "finish.lua or release.lua")
	l.step(svg.Plain, "transport", "detached: sent even if ctx has ended;", "not confirmed: Pending sends it again")
	l.fork(
		branch{tone: svg.Good, actor: "Redis: recorded", end: true, lines: []string{"also after a loss; a message", "wakes waiters"}},
		branch{tone: svg.Bad, actor: "Redis: stale", end: true, lines: []string{"another attempt has begun, or", "Resolve was called: ErrStale"}},
	)
	return l.Picture
}
