package core

import (
	"cmp"
	"slices"
	"time"
)

// Held is one valid lease of this process. A [Multi] has one for each member, and so does each re-entry.
type Held struct {
	// Name of the lock or the election, or key of the [Once], without prefix.
	Name string
	// Mode is how the lease is held: [ModeOnce] for an attempt, [ModeElection] for a leader.
	Mode Mode
	// Owner as it is stored in Redis, see [Lease.Owner].
	Owner string
	// Token is the fencing token of the grant. It is the term of a leader.
	Token int64
	// Permits of a [Client.Semaphore]; 0 for other locks.
	Permits int
	// Since is when this process got the lease, by its own clock.
	Since time.Time
	// ValidUntil is the time until which the lease is certain, see [Lease.ValidUntil].
	ValidUntil time.Time
	// TTL is what each renewal asks Redis for.
	TTL time.Duration
	// Renewed is false if the lease is left to expire, see [WithFixedTTL].
	Renewed bool
}

// Waiting is one call of this process that waits: Lock, Do, Campaign, or a [Once] with [WithWait].
type Waiting struct {
	// Name of the lock or the election, or key of the [Once], without prefix.
	Name string
	// Mode is how the call will hold the lock: [ModeOnce] for an attempt, [ModeElection] for a candidate.
	Mode Mode
	// Owner is the future owner of the lock.
	Owner string
	// Since is when the call found the lock held, by the clock of this process.
	Since time.Time
	// Position is the place of the call, from 1. It is 0 if it is not known at this moment.
	Position int
	// InRedis is true if Position counts in the queue in Redis, with the waiters of all processes. It is false if it counts
	// the callers of this process, of which only the first asks Redis.
	InRedis bool
}

// Held returns the valid leases of this client at one instant, by name and since when: locks, attempts of [Once] and leaders.
// It asks no server. Names are as the caller chose them, and may contain a user's data.
func (c *Client) Held() []Held { return c.engine.held() }

// Held is [Client.Held] for the leases of the Redlock.
func (r *Redlock) Held() []Held { return r.engine.held() }

// Waiting returns the calls that wait at one instant, by name and position. It asks no server: the position in a queue
// in Redis is the position at the last heartbeat, a few seconds ago at most. Names are as the caller chose them, and
// may contain a user's data.
func (c *Client) Waiting() []Waiting { return c.engine.waiting() }

// Waiting is [Client.Waiting] for the calls of the Redlock. They have no queue in Redis.
func (r *Redlock) Waiting() []Waiting { return r.engine.waiting() }

// held converts instants to times like [Lease.ValidUntil]: the wall clock is read first.
func (e *engine) held() []Held {
	wall, now := time.Now(), e.now()
	var all []Held
	for _, live := range e.renewer.Live() {
		l := live.Lease.(keptLease).Lease
		if live.ValidUntil <= now {
			continue // it ends at this moment
		}
		all = append(all, Held{
			Name: l.hold.Name, Mode: modeOf(l.strategy), Owner: l.hold.Owner, Token: l.token, Permits: l.hold.Permits,
			Since: wall.Add(live.Granted.Sub(now)), ValidUntil: wall.Add(live.ValidUntil.Sub(now)),
			TTL: live.TTL, Renewed: live.Renewed,
		})
	}
	slices.SortFunc(all, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since), cmp.Compare(a.Owner, b.Owner))
	})
	return all
}

func (e *engine) waiting() []Waiting {
	wall, now := time.Now(), e.now()
	calls, positions := e.acquiring.Calls.All(), e.acquiring.Lists.Positions()
	all := make([]Waiting, 0, len(calls))
	for _, call := range calls {
		w := Waiting{
			Name: call.Name, Mode: modeOf(call.Strategy), Owner: call.Owner, Since: wall.Add(call.Since.Sub(now)),
			Position: positions[call.Local], InRedis: call.Local == nil,
		}
		if call.Place != nil {
			w.Position = call.Place.State().Ahead + 1
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Position, b.Position), a.Since.Compare(b.Since), cmp.Compare(a.Owner, b.Owner))
	})
	return all
}
