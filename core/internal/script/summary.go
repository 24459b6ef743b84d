package script

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

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
