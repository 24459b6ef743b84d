package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// snapshot is the state of a lock as internal/lockscript/lua/inspect.lua returns it.
type snapshot struct {
	ttl       time.Duration
	fields    map[string]string // of the lock's hash
	listeners int
	now       int64             // ms
	reads     map[string]string // id of a shared hold: its expiry
	lines     map[string]string // id of a waiter: its number in the queue
	waiters   map[string]string // the same: deadline, ttl, mode and owner
	shares    int               // that are alive, in all
	places    int               // in line, in all
}

func readSnapshot(reply any) (s snapshot, err error) {
	list, _ := reply.([]any)
	if len(list) != 10 {
		return snapshot{}, fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
	}
	ttl, _ := list[0].(int64)
	listeners, _ := list[2].(int64)
	s.ttl, s.listeners = time.Duration(ttl)*time.Millisecond, int(listeners)
	s.now, _ = list[3].(int64)
	s.fields, s.reads, s.waiters = lockscript.Pairs(list[1]), lockscript.Pairs(list[4]), lockscript.Pairs(list[7])
	s.lines = lockscript.Pairs(list[5], list[6])
	shares, _ := list[8].(int64)
	places, _ := list[9].(int64)
	s.shares, s.places = int(shares), int(places)
	return s, nil
}

func (s snapshot) info() Info {
	info := Info{Waiters: s.listeners, Queue: s.queue(), Places: s.places}
	if len(s.fields) == 0 {
		return info
	}
	info.TTL = s.ttl
	if s.fields["has_shares"] != "" { // otherwise they are of an earlier lock, which was deleted
		info.Shares = s.shares
	}
	switch s.fields["mode"] {
	case "fair":
		info.Mode = ModeFair
	case "reading", "read":
		info.Mode = ModeRead
	case "writing", "write":
		info.Mode = ModeWrite
	default:
		info.Mode = ModeMutex
	}
	if s.over() {
		info.Mode = ModeRead
	}
	info.Holders = append(s.readers(), s.exclusive()...)
	slices.SortFunc(info.Holders, func(a, b Holder) int { return strings.Compare(a.Owner, b.Owner) })
	return info
}

// over reports whether the exclusive hold has ended and what is left are its owner's shares. The hash says otherwise
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
		if lockField(field) {
			continue
		}
		h := Holder{Owner: field, TTL: ttl, Token: lockscript.Number(s.fields["token"]), Holds: int(lockscript.Number(value))}
		if granted := lockscript.Number(s.fields["granted"]); granted > 0 {
			h.Granted = time.UnixMicro(granted)
		}
		holders = append(holders, h)
	}
	return holders
}

// readers returns the owners that share the lock, each with the rest of its share that lasts longest.
func (s snapshot) readers() (holders []Holder) {
	byOwner := make(map[string]*Holder)
	for id, expiry := range s.reads {
		_, owner, _ := strings.Cut(s.fields["share:"+id], " ")
		state := strings.Fields(s.fields[readField+owner]) // count, token and granted
		left := s.left(expiry)
		if len(state) != 3 || left <= 0 {
			continue
		}
		h := byOwner[owner]
		if h == nil {
			h = &Holder{Owner: owner, Token: lockscript.Number(state[1]), Granted: time.UnixMicro(lockscript.Number(state[2]))}
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
func (s snapshot) queue() (queue []Waiter) {
	ids := make([]string, 0, len(s.lines))
	for id := range s.lines {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Compare(lockscript.Number(s.lines[a]), lockscript.Number(s.lines[b]))
	})
	for _, id := range ids {
		if len(queue) == maxInspected {
			break
		}
		state := strings.SplitN(s.waiters[id], " ", 4)
		if len(state) != 4 || s.left(state[0]) <= 0 {
			continue
		}
		w := Waiter{Owner: state[3], Mode: ModeFair}
		switch state[2] {
		case "reading":
			w.Mode = ModeRead
		case "writing":
			w.Mode = ModeWrite
		}
		queue = append(queue, w)
	}
	return queue
}

// left returns the time to an expiry in ms by the server's clock.
func (s snapshot) left(expiry string) time.Duration {
	return time.Duration(lockscript.Number(expiry)-s.now) * time.Millisecond
}

// lockField reports whether a field of a lock's hash is something else than an exclusive owner.
func lockField(field string) bool {
	switch field {
	case "mode", "token", "granted", "ttl", "min_hold_until", "exclusive_owner", "exclusive_until", "has_shares",
		"readers_first_until", "grant_id", "token_committed", "has_waiting_clients":
		return true
	}
	for _, prefix := range []string{"hold:", "share:", readField} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return false
}

// readField begins the fields of owners that share the lock.
const readField = "read:"
