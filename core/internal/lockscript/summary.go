package lockscript

import (
	"context"
	"math"
	"regexp"
	"strings"

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

// readSummary returns what the reply of lua/summary.lua says, and true if the lock is in the compact state.
func readSummary(reply any) (sum Summary, compact bool, err error) {
	d := Decode(reply)
	s := snapshot{ttl: d.TTL(), now: d.Int(0, maxExact)}
	size := d.Int(0, math.MaxInt32)
	s.fields = d.Pairs()
	if err := d.End(); err != nil {
		return Summary{}, false, err
	}
	if len(s.fields) == 0 {
		return Summary{NoLock: size > 0}, false, nil
	}
	sum.Foreign, sum.NoLock = s.foreign()
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

// redissonOwner is how Redisson names an owner: the UUID of the client and the number of the thread.
var redissonOwner = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)

// foreign returns whether a hash is a lock of Redisson, and whether it is no lock. Both are false for a lock of holdfast.
//
// Redisson's RLock has one field, its owner. Its read-write lock has a mode that holdfast never writes.
func (s snapshot) foreign() (foreign, noLock bool) {
	switch mode := s.fields["mode"]; mode {
	case "mutex", "fair", "reading", "writing":
		return false, false
	case "read", "write":
		return true, false
	case "":
	default:
		ttl := mode[strings.LastIndexByte(mode, ' ')+1:] // of the compact state
		return false, Number(ttl) == 0 || Number(s.fields["token"]) == 0
	}
	for owner, entries := range s.fields {
		if len(s.fields) == 1 && redissonOwner.MatchString(owner) && Number(entries) > 0 {
			return true, false
		}
	}
	return false, true
}

// leader returns whether a leader has proclaimed a value in this grant, and the value, see lua/proclaim.lua.
func (s snapshot) leader() (bool, string) {
	parts := strings.SplitN(s.fields["leader_value"], " ", 3)
	if len(parts) != 3 || parts[0] != s.fields["token"] {
		return false, ""
	}
	return true, parts[2]
}
