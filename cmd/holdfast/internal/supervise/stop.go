//go:build linux || darwin

package supervise

import "time"

// stop is one reason to end the command.
type stop struct {
	reason Reason
	termAt instant // when TERM is sent
	killAt instant // when KILL is sent
}

// stops are all reasons to end the command. The first of them that is due counts.
type stops struct {
	all        []stop
	killBefore time.Duration
	terminated bool // TERM was sent
}

// add makes TERM due at an instant, and KILL the grace later.
func (s *stops) add(reason Reason, termAt instant) {
	s.all = append(s.all, stop{reason, termAt, termAt.add(s.killBefore)})
}

// due returns what to send at an instant, and why: TERM at most once, KILL as often as asked. The lease is an additional
// reason to stop. After TERM, KILL is due after the grace, whatever becomes of the lease.
func (s *stops) due(lease stop, at instant) (term, kill bool, reason Reason) {
	for _, other := range append([]stop{lease}, s.all...) {
		if at >= other.termAt && reason == "" {
			term, reason = !s.terminated, other.reason
		}
		kill = kill || at >= other.killAt
	}
	if term {
		s.terminated = true
		s.all = append(s.all, stop{reason, at, at.add(s.killBefore)})
	}
	return term && !kill, kill, reason
}

// next returns the instant at which due changes next.
func (s *stops) next(lease stop, at instant) instant {
	next := never
	for _, other := range append([]stop{lease}, s.all...) {
		for _, t := range []instant{other.termAt, other.killAt} {
			if t > at {
				next = min(next, t)
			}
		}
	}
	return next
}
