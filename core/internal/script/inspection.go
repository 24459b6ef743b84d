package script

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// State is the state of a lock at one instant. Package core has the same type as Info, and says what its fields mean.
type State struct {
	Mode    string // mutex, fair, read, write or semaphore; "" for a free lock
	Holders []Holder
	Shares  int
	TTL     time.Duration
	Waiters int
	Queue   []Waiter
	Places  int

	Election bool   // true if a leader of an election has proclaimed itself
	Value    string // that the leader has proclaimed
}

// Waiter is a place in the queue of a lock.
type Waiter struct {
	Owner, Mode    string
	Permits, Limit int // of a semaphore
}

// Holder is one owner of a lock.
type Holder struct {
	Owner          string
	Holds          int
	TTL            time.Duration
	Token          int64     // 0 for a client of Redisson
	Granted        time.Time // zero for a client of Redisson
	Permits, Limit int       // of a semaphore, and n with which they were requested
	Slot           int       // of the first permit
}

// State reads the state of a lock. The reply of lua/lock/inspect.lua has at most limit shares and limit waiters.
func (i *Instance) State(ctx context.Context, k Keys, limit int) (s State, err error) {
	err = transport.Retry(ctx, 0, transport.Transient, func() error {
		s, err = i.tryState(ctx, k, limit)
		return err
	})
	return s, err
}

// tryState is State without retries.
func (i *Instance) tryState(ctx context.Context, k Keys, limit int) (State, error) {
	reply, err := i.Exec.Do(ctx, inspectScript,
		[]string{k.Lock, k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters(), k.Slots()}, k.Channel, i.PublishVerb, limit)
	if err != nil {
		return State{}, err
	}
	s, err := readSnapshot(reply)
	if err != nil {
		return State{}, err
	}
	return s.state(limit), nil
}

// snapshot is the state of a lock as lua/lock/inspect.lua returns it.
type snapshot struct {
	ttl       time.Duration
	fields    map[string]string // of the lock's hash
	listeners int
	now       int64             // ms
	reads     map[string]string // id of a shared hold: its expiry
	lines     map[string]string // id of a waiter: its number in the queue
	waiters   map[string]string // by the same: deadline, ttl, mode and owner
	shares    int               // that are alive, in all
	places    int               // in the queue, in all
	slots     map[string]string // by owner: the slot of the first permit
}

// readSnapshot returns the state in a reply.
func readSnapshot(reply any) (s snapshot, err error) {
	d := newDecoder(reply)
	s.ttl, s.fields = d.TTL(), d.Pairs()
	s.listeners, s.now = int(d.Int(-1, math.MaxInt32)), d.Int(0, maxExact)
	s.reads, s.lines = d.Pairs(), d.Pairs()
	maps.Copy(s.lines, d.Pairs())
	s.waiters = d.Pairs()
	s.shares, s.places = int(d.Int(0, math.MaxInt32)), int(d.Int(0, math.MaxInt32))
	s.slots = d.Pairs()
	if err := d.End(); err != nil {
		return snapshot{}, err
	}
	s.expand()
	return s, nil
}

// expand adds what the fields of a compact lock stand for, see lua/lock/compact.lua.
func (s *snapshot) expand() {
	parts := strings.Split("mutex "+s.fields["mode"], " ")
	if len(parts) < 3 {
		return
	}
	mode, token := parts[len(parts)-3], parts[len(parts)-1]
	s.fields["mode"], s.fields["token"], s.fields["granted"] = mode, token, token
	limit, permits := permitsOf(mode)
	if mode != "reading" && limit == 0 {
		return
	}
	s.reads, s.shares, s.fields["mode"], s.fields["has_shares"] = make(map[string]string), 1, "reading", "1"
	for field, entries := range s.fields {
		if !IsLockField(field) {
			s.reads[field] = strconv.FormatInt(s.now+int64(s.ttl/time.Millisecond), 10)
			s.fields["share:"+field] = "0 " + field
			s.fields[readField+field] = entries + " " + token + " " + token
			delete(s.fields, field)
			if limit > 0 {
				s.fields[permitsField+field] = strconv.Itoa(limit) + " " + strconv.Itoa(permits)
			}
			return
		}
	}
}

// state returns what the hash and the queues say, with at most limit waiters.
func (s snapshot) state(limit int) State {
	info := State{Waiters: s.listeners, Queue: s.queue(limit), Places: s.places}
	if len(s.fields) == 0 {
		return info
	}
	info.TTL = s.ttl
	if s.fields["has_shares"] != "" { // otherwise they are of an earlier lock, which was deleted
		info.Shares = s.shares
	}
	info.Mode = modeName(s.fields["mode"])
	if s.over() {
		info.Mode = "read"
	}
	info.Holders = append(s.readers(), s.exclusive()...)
	if info.Mode == "read" && slices.ContainsFunc(info.Holders, func(h Holder) bool { return h.Permits > 0 }) {
		info.Mode = "semaphore"
	}
	slices.SortFunc(info.Holders, func(a, b Holder) int { return strings.Compare(a.Owner, b.Owner) })
	info.Election, info.Value = s.leader()
	return info
}

// modeName returns what users call a mode in Redis.
func modeName(mode string) string {
	switch mode {
	case "fair", "semaphore":
		return mode
	case "reading", "read":
		return "read"
	case "writing", "write":
		return "write"
	}
	return "mutex"
}

// over returns true if the exclusive hold has ended, and what is left is its owner's shares. The hash says otherwise
// until a script finds that out.
func (s snapshot) over() bool {
	until := s.fields["exclusive_until"]
	return until != "" && s.left(until) <= 0
}

// exclusive returns the exclusive holder. Of a Redisson read lock, whose hash looks the same, it returns all readers.
func (s snapshot) exclusive() (holders []Holder) {
	if s.over() {
		return nil
	}
	ttl := s.ttl
	if until := s.fields["exclusive_until"]; until != "" {
		ttl = s.left(until)
	}
	for field, value := range s.fields {
		if IsLockField(field) {
			continue
		}
		holders = append(holders, Holder{
			Owner: field, TTL: ttl, Token: tokenOf(s.fields["token"]), Holds: int(number(value, math.MaxInt32)), Granted: moment(s.fields["granted"]),
		})
	}
	return holders
}

// readers returns the owners that share the lock, each with the rest of its share that lasts longest.
func (s snapshot) readers() (holders []Holder) {
	byOwner := make(map[string]*Holder)
	for id, expiry := range s.reads {
		_, owner, _ := strings.Cut(s.fields["share:"+id], " ")
		state := strings.Fields(s.fields[readField+owner]) // count, token, granted and more
		left := s.left(expiry)
		if len(state) < 3 || left <= 0 {
			continue
		}
		h := byOwner[owner]
		if h == nil {
			h = &Holder{Owner: owner, Token: tokenOf(state[1]), Granted: moment(state[2])}
			h.Limit, h.Permits = permitsIn(s.fields[permitsField+owner], " ")
			h.Slot = int(number(s.slots[owner], MaxLimit-1))
			byOwner[owner] = h
		}
		h.Holds++
		h.TTL = max(h.TTL, left)
	}
	for _, h := range byOwner {
		holders = append(holders, *h)
	}
	return holders
}

// queue returns the waiters in the queue whose heartbeats have come in time.
func (s snapshot) queue(limit int) (queue []Waiter) {
	ids := make([]string, 0, len(s.lines))
	for id := range s.lines {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Compare(number(s.lines[a], maxExact), number(s.lines[b], maxExact))
	})
	for _, id := range ids {
		if len(queue) == limit {
			break
		}
		state := strings.SplitN(s.waiters[id], " ", 4)
		if len(state) != 4 || s.left(state[0]) <= 0 {
			continue
		}
		w := Waiter{Owner: state[3]}
		w.Limit, w.Permits = permitsOf(state[2])
		if w.Mode = "semaphore"; w.Limit == 0 {
			w.Mode = modeName(state[2])
		}
		queue = append(queue, w)
	}
	return queue
}

// left returns the time to an expiry in ms by the server's clock.
func (s snapshot) left(expiry string) time.Duration {
	ms := number(expiry, maxExact)
	if ms == 0 { // no script writes that
		return 0
	}
	return time.Duration(min(ms-s.now, int64(longestTTL/time.Millisecond))) * time.Millisecond
}

// IsLockField returns true if a field of a lock's hash is something else than an exclusive owner.
func IsLockField(field string) bool {
	switch field {
	case "mode", "token", "granted", "ttl", "min_hold_until", "exclusive_owner", "exclusive_until", "has_shares",
		"readers_first_until", "grant_id", "token_committed", "has_waiting_clients", "leader_value":
		return true
	}
	for _, prefix := range []string{"hold:", "share:", readField, permitsField} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return false
}

// The prefixes of the fields of owners that share the lock, and that have permits.
const (
	readField    = "read:"
	permitsField = "permits:"
)

// permitsOf returns the limit and the permits of a mode, see semaphoreMode. Both are 0 for the mode of another lock.
func permitsOf(mode string) (limit, permits int) {
	if _, numbers, ok := strings.Cut(mode, "semaphore:"); ok {
		return permitsIn(numbers, ":")
	}
	return 0, 0
}

// permitsIn returns a limit and permits that a text has, with a separator between them. Both are 0 if one is none that
// a script writes.
func permitsIn(text, separator string) (limit, permits int) {
	before, after, _ := strings.Cut(text, separator)
	limit, permits = int(number(before, MaxLimit)), int(number(after, MaxPermits))
	if limit == 0 || permits == 0 {
		return 0, 0
	}
	return limit, permits
}

// Summary is the state of a lock for a list of many. Package core has the same type as Entry.
type Summary struct {
	State
	Holds   int  // of all holders
	Foreign bool // true if the hash is not of holdfast, and looks like a lock of Redisson
	NoLock  bool // true if the hash is no lock
}

// unknownPlaces is the number of places in a queue that could not be read.
const unknownPlaces = -1

// Summary reads the state of a lock for a list. The replies have at most limit holds and places. The Mode of a free lock is "".
//
// A lock in the compact state has only one key, and nothing waits in its queue. For any other lock a second command follows. While
// its slot moves, that is refused: then Places is -1, and shares are not known.
func (i *Instance) Summary(ctx context.Context, k Keys, limit int) (Summary, error) {
	var reply any
	err := transport.Retry(ctx, 0, transport.Transient, func() (err error) {
		reply, err = i.Exec.Do(ctx, summaryScript, []string{k.Lock}, limit)
		return err
	})
	if err != nil {
		return Summary{}, err
	}
	sum, compact, err := readSummary(reply)
	if err != nil {
		return Summary{}, err
	}
	if compact || sum.Mode == "" || sum.NoLock {
		return sum, nil
	}
	state, err := i.tryState(ctx, k, limit)
	switch {
	case err == nil && state.Mode == "":
		return Summary{}, nil // it was released meanwhile
	case err == nil:
		sum.State, sum.Holds = state, countHolds(state)
	case !transport.SlotMigrating(err):
		return Summary{}, err
	}
	return sum, nil
}

// readSummary returns what the reply of lua/lock/summary.lua says, and true if the lock is in the compact state.
func readSummary(reply any) (sum Summary, compact bool, err error) {
	d := newDecoder(reply)
	s := snapshot{ttl: d.TTL(), now: d.Int(0, maxExact)}
	isLock := d.Bool()
	s.fields = d.Pairs()
	switch err := d.End(); {
	case err != nil:
		return Summary{}, false, err
	case s.ttl == noKey:
		return Summary{}, false, nil
	case !isLock:
		return Summary{NoLock: true}, false, nil
	}
	sum.Foreign = s.foreign()
	sum.Election, sum.Value = s.leader()
	mode := s.fields["mode"]
	s.expand()
	compact = mode != s.fields["mode"]
	sum.State = s.state(0)
	if !compact {
		sum.Places = unknownPlaces
	}
	sum.Holds = countHolds(sum.State)
	return sum, compact, nil
}

// countHolds returns how many holds a lock has: its shares, and the exclusive holder.
func countHolds(s State) int {
	if s.Mode == "read" || s.Mode == "semaphore" {
		return s.Shares
	}
	return s.Shares + min(len(s.Holders), 1)
}

// noKey is the TTL of a key that does not exist.
const noKey = -2 * time.Millisecond

// foreign returns whether a lock is one of Redisson, see lua/lock/lock_kind.lua.
func (s snapshot) foreign() bool {
	mode := s.fields["mode"]
	return mode == "" || mode == "read" || mode == "write"
}

// leader returns whether a leader has proclaimed a value in this grant, and the value, see lua/lock/proclaim.lua.
func (s snapshot) leader() (bool, string) {
	parts := strings.SplitN(s.fields["leader_value"], " ", 3)
	if len(parts) != 3 || parts[0] != s.fields["token"] {
		return false, ""
	}
	return true, parts[2]
}
