package script_test

import "github.com/holdfast-go/holdfast/core/internal/script"

// The operations of the model.

// pass lets time go by.
func (m *model) pass(seconds int) { m.now += seconds }

func (m *model) acquire(c *contender) verdict {
	m.expire()
	if _, was := m.released[c.ID]; was {
		return verdict{Result: script.Result{HoldReleased: true}}
	}
	waits := c.mayQueue
	if c.plain() {
		// A Mutex takes a lock that it finds free without a look at the line. Otherwise it enters with the rules of
		// the others, but never waits in line.
		if m.free() {
			return m.grant(c)
		}
		if m.isPlain() && !m.holds(c) && (m.sole.owner != c.Owner || !m.proves(c)) {
			return m.refuse(c)
		}
		waits = false
	}
	if !m.isPlain() || !c.plain() {
		if m.seatOf(c.ID) != nil {
			m.sit(c)
		}
		m.handOver(false)
	}
	switch {
	case c.k > m.permitsOf(c.Owner) && m.shareOf(c.Owner) != nil && m.proves(c):
		return verdict{Result: script.Result{Refused: script.ErrUpgrade}}
	case m.holds(c) || m.admits(c):
		return m.grant(c)
	case !c.shared() && m.shareOf(c.Owner) != nil && m.proves(c):
		return verdict{Result: script.Result{Refused: script.ErrUpgrade}}
	}
	if waits {
		m.sit(c)
	}
	return m.refuse(c)
}

// admits reports whether a contender that asks may enter.
func (m *model) admits(c *contender) bool {
	switch {
	case m.sole != nil && m.sole.owner == c.Owner && m.proves(c):
		return true
	case c.shared() && m.shareOf(c.Owner) != nil && m.proves(c):
		return true
	case m.sole != nil:
		return false
	case c.shared():
		return len(m.living(false)) == 0 && len(m.living(true)) == 0 && m.fits(c)
	}
	return m.free() && len(m.living(false)) == 0 && len(m.living(true)) == 0
}

func (m *model) grant(c *contender) verdict {
	v := verdict{Result: script.Result{Granted: true}, grant: m.enter(c, c.time(), seconds(c.MinHold))}
	v.slot = m.slotOf(c)
	return v
}

func (m *model) refuse(c *contender) verdict {
	v := verdict{left: m.until() - m.now}
	if c.limit > 0 && m.sole == nil {
		v.left = m.earliest() - m.now
	}
	v.Broadcasts = m.isPlain() && !c.plain()
	if m.seatOf(c.ID) != nil && c.mayQueue {
		v.Ahead, v.atMost = m.before(c.ID)
	}
	return v
}

func (m *model) release(c *contender, what script.ReleaseReason) bool {
	m.expire()
	held := m.holds(c)
	was, remembered := m.released[c.ID]
	if !held && remembered {
		return was.held
	}
	// With Mutexes, or if release.lua has said already that it was not held: then the line looks after itself.
	other := c.plain() && !m.free() && !m.isPlain() // release.lua leaves a mark before queue_release.lua runs
	alone := c.plain() && (m.free() || m.isPlain() || what == script.NeverHeld && !held)
	last := held && m.end(c, what)
	if what == script.NeverHeld && (!held || other || c.Stored) { // otherwise its request is not on its way any more
		m.released[c.ID] = memory{held && c.Stored, m.now + seconds(script.AbandonMemory)}
	}
	if !alone {
		m.leave(c.ID)
		m.handOver(last && c.readersNext)
	}
	if held {
		m.announce()
	}
	return held
}

// end ends a hold and reports whether no owner holds the lock exclusively any more since then.
func (m *model) end(c *contender, what script.ReleaseReason) bool {
	if c.shared() {
		m.endShare(c, what)
		return false
	}
	delete(m.sole.ids, c.ID)
	switch {
	case len(m.sole.ids) > 0:
		return false
	case what == script.HeldByCaller && m.sole.keep > m.now:
		m.sole.owner, m.sole.expires = "", m.sole.keep
		for _, s := range m.line {
			if c.readersNext && s.shared() {
				m.gate = s.place
			}
		}
		return false
	}
	m.sole = nil
	return true
}

// endShare ends a shared hold. Its minimum time is also one of the permits of its owner, which may last longer.
func (m *model) endShare(c *contender, what script.ReleaseReason) {
	keep := 0
	if what == script.HeldByCaller {
		keep = m.shares[c.ID].keep
	}
	delete(m.shares, c.ID)
	if p := m.permits[c.Owner]; p != nil {
		p.keep = max(p.keep, keep)
	} else if keep > m.now {
		m.kept[c.ID] = keep
	}
	m.endPermits(c.ID)
}

func (m *model) renew(c *contender, ttl int) bool {
	m.expire()
	switch {
	case !m.holds(c):
		return false
	case c.shared():
		s := m.shares[c.ID]
		s.expires = max(s.expires, m.now+ttl)
	default:
		m.sole.expires = max(m.sole.expires, m.now+ttl)
	}
	return true
}

// beat sends heartbeats for those that are in line.
func (m *model) beat(all []*contender) {
	for _, c := range all {
		if m.seatOf(c.ID) != nil {
			m.sit(c)
		}
	}
	m.expire()
	m.handOver(false)
}

// force takes the lock from all holders and reports whether there were any. The id is of this call.
func (m *model) force(id string) bool {
	m.expire()
	if was, again := m.released[id]; again {
		return was.held
	}
	held := !m.free()
	m.lose()
	m.released[id] = memory{held, m.now + seconds(script.AbandonMemory)}
	m.handOver(false)
	if held {
		m.announce()
	}
	return held
}

// lose is what happens if another program deletes the lock's key.
func (m *model) lose() {
	m.sole = nil
	clear(m.shares)
	clear(m.permits)
	clear(m.kept)
}

// flush is what happens if all keys are.
func (m *model) flush() {
	m.lose()
	m.line, m.gate = nil, 0
	clear(m.released)
	m.known = len(m.tokens)
}
