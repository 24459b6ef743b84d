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

// State is the state of a lock at one instant. Package core has the same type as Info, and for lists as Entry, and says what its
// fields mean.
type State struct {
	Mode    string // mutex, fair, read, write or semaphore; "" for a free lock
	Holders []Holder
	Shares  int
	TTL     time.Duration
	Waiters int
	Queue   []Waiter
	Places  int
	Foreign bool // true if the hash is not of holdfast, and looks like a lock of Redisson

	Election     bool   // true if a leader of an election has proclaimed itself
	Value        string // that the leader has proclaimed
	Proclamation int64  // its number, which grows with each in a grant; 0 for none
}

// Holds returns how many holds a lock has: its shares, and the exclusive holder.
func (s *State) Holds() int {
	if s.Mode == "read" || s.Mode == "semaphore" {
		return s.Shares
	}
	return s.Shares + min(len(s.Holders), 1)
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
func (i *Instance) State(ctx context.Context, k Keys, limit int) (State, error) {
	return i.state(ctx, k, limit, transport.Transient)
}

// state is State that repeats its command after the errors for which retryable returns true.
func (i *Instance) state(ctx context.Context, k Keys, limit int, retryable func(error) bool) (State, error) {
	keys := []string{k.Lock, k.ShareExpiries(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters(), k.Slots()}
	s, err := i.snapshot(ctx, retryable, keys, limit, k.Channel, i.PublishVerbArg)
	return s.state(limit), err
}

// snapshot is the state of a lock as lua/lock/inspect.lua returns it.
type snapshot struct {
	ttl       time.Duration
	fields    map[string]string // of the lock's hash
	compact   bool              // true if the lock was in the compact state
	foreign   bool              // true for a lock of Redisson, see lua/lock/lock_kind.lua
	now       int64             // ms
	listeners int
	reads     map[string]string // id of a shared hold: its expiry
	lines     map[string]string // id of a waiter: its number in the queue
	waiters   map[string]string // by the same: deadline, ttl, mode and owner
	shares    int               // that are alive, in all
	places    int               // in the queue, in all
	slots     map[string]string // by owner: the slot of the first permit
}

// snapshot reads the state of a lock with these keys and arguments, see lua/lock/inspect.lua.
func (i *Instance) snapshot(ctx context.Context, retryable func(error) bool, keys []string, args ...any) (s snapshot, err error) {
	err = transport.Retry(ctx, 0, retryable, func() error {
		reply, err := i.Exec.Do(ctx, inspectScript, keys, args...)
		if err == nil {
			s, err = readSnapshot(reply, len(keys) > 1)
		}
		return err
	})
	return s, err
}

// readSnapshot returns the state in a reply: what the lock's own key says, and if whole is true, what the others say.
func readSnapshot(reply any, whole bool) (s snapshot, err error) {
	d := newDecoder(reply)
	s.ttl, s.fields, s.now = d.TTL(), d.Pairs(), d.Int(0, maxExact)
	if whole {
		s.listeners = int(d.Int(-1, math.MaxInt32))
		s.reads, s.lines = d.Pairs(), d.Pairs()
		maps.Copy(s.lines, d.Pairs())
		s.waiters = d.Pairs()
		s.shares, s.places = int(d.Int(0, math.MaxInt32)), int(d.Int(0, math.MaxInt32))
		s.slots = d.Pairs()
	}
	if err := d.End(); err != nil {
		return snapshot{}, err
	}
	mode := s.fields["mode"]
	s.foreign = len(s.fields) > 0 && (mode == "" || mode == "read" || mode == "write")
	s.expand()
	s.compact = mode != s.fields["mode"]
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
	info := State{Waiters: s.listeners, Queue: s.queue(limit), Places: s.places, Foreign: s.foreign}
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
	if parts := strings.SplitN(s.fields["leader_value"], " ", 3); len(parts) == 3 && parts[0] == s.fields["token"] { // see lua/lock/proclaim.lua
		info.Election, info.Proclamation, info.Value = true, number(parts[1], maxExact), parts[2]
	}
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

// unknownPlaces is the number of places in a queue that could not be read.
const unknownPlaces = -1

// Summary is State for a list of many. The replies have at most limit holds and places.
//
// A lock in the compact state has only one key, and nothing waits in its queue. For any other lock a second command follows. While
// its slot moves, that is refused: then Places is -1, and shares are not known.
func (i *Instance) Summary(ctx context.Context, k Keys, limit int) (State, error) {
	s, err := i.snapshot(ctx, transport.Transient, []string{k.Lock}, limit)
	if err != nil || s.compact || len(s.fields) == 0 {
		return s.state(0), err
	}
	state, err := i.state(ctx, k, limit, func(err error) bool { return transport.Transient(err) && !transport.SlotMigrating(err) })
	if transport.SlotMigrating(err) {
		state, err = s.state(0), nil
		state.Places = unknownPlaces
	}
	return state, err
}
