package script

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decoders are the functions that read replies, by the script. Each returns what the reply says.
var decoders = map[string]func(reply any) (any, error){
	"acquire": func(reply any) (any, error) {
		result, _, err := readMutexReply(reply)
		return result, err
	},
	"queue_acquire": func(reply any) (any, error) {
		result, _, err := readQueueReply(reply, MaxLimit)
		return result, err
	},
	"queue_heartbeat": func(reply any) (any, error) {
		state, ahead, err := ReadHeartbeat(reply, 2)
		if err == nil && len(ahead) != 2 {
			panic("places are missing")
		}
		return state, err
	},
	"renew": func(reply any) (any, error) {
		held, err := readRenewal(reply)
		return held, err
	},
	"force_holder": func(reply any) (any, error) {
		_, next, err := readForced(reply, 2000)
		if err == nil && next >= 0 && (next < 2000 || next > 3000) {
			panic("no next place")
		}
		return next, err
	},
	"inspect": func(reply any) (any, error) {
		s, err := readSnapshot(reply, true)
		return s.state(10), err
	},
	"inspect with one key": func(reply any) (any, error) {
		s, err := readSnapshot(reply, false)
		return s.state(10), err
	},
}

// reply makes a reply of integers, strings and lists.
func reply(elements ...any) []any {
	for i, element := range elements {
		if n, ok := element.(int); ok {
			elements[i] = int64(n)
		}
	}
	return elements
}

// wrongReplies are replies that the script never makes, but that a co-tenant's write or another server can cause.
var wrongReplies = map[string][]any{
	"acquire": {
		nil, "OK", int64(0), int64(1), int64(leastToken - 1), int64(-1), int64(math.MaxInt64), reply(), reply(0), reply(1), reply(1, 5), reply(1, 5, 0, 0), reply(1, 0, 0),
		reply(1, int64(TokenLimit+1), 0), reply(1, 5, 4), reply(0, 5), reply(0, 5, 0), reply(0, 5, 2, "o"), reply(0, 5, 0, 7), reply(0, "5", 0, "o"),
		reply(0, -3, 0, "o"), reply(-1), reply(-1, 7), reply(-2), reply(-3), reply(-4, 0), reply(2, 5, 0), reply("1", 5, 0), reply(reply(1), 5, 0),
	},
	"queue_acquire": {
		nil, int64(0), int64(5), int64(TokenLimit + 1), reply(), reply(0), reply(1), reply(0, 1), reply(0, 1, 2), reply(2), reply(3, 0, 5, 99), reply(1, 0),
		reply(1, int64(math.MaxInt64)), reply(1, 5, 0), reply(1, 5, MaxLimit), reply(0, 5, 0, 0, 0, 0), reply(0, 5, -1, 0, 0, 0, "o"),
		reply(0, 5, 0, 0, int64(TokenLimit+1), 0, "o"), reply(0, 5, 0, 0, 0, 2, "o"), reply(-1, 0), reply(-3),
	},
	"queue_heartbeat": {
		nil, reply(5, 0, 0, 0), reply(5, 0, 0, 0, 0), reply(5, 0, 0, 0, "o"), reply(5, 0, 0, 0, 0, 0, "o"), reply(5, 0, 2, 0, 0, "o"),
		reply(5, int64(TokenLimit+1), 0, 0, 0, "o"), reply(5, 0, 0, -2, 0, "o"),
	},
	"force_holder": {
		nil, int64(1), reply(), reply(1), reply(-1, -1), reply(1, -2), reply(1, 0), reply(1, 1999), reply(1, 3001), reply(1002, -1), reply(1, -1, 0),
		reply("1", -1), reply(int64(math.MaxInt64), -1), reply(0, int64(math.MaxInt64)),
	},
	"renew": {nil, "1", int64(-2), int64(6), int64(math.MaxInt64), reply(1)},
	"inspect": {
		nil, reply(), reply(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
		reply(5, reply(), 5),
		reply(5, reply("a"), 0, 0, reply(), reply(), reply(), reply(), 0, 0, reply()),
		reply(5, reply("a", 1), 0, 0, reply(), reply(), reply(), reply(), 0, 0, reply()),
	},
	"inspect with one key": {nil, reply(), reply(5, 5), reply(5, 5, 1), reply(5, reply("a"), 1), reply(5, reply(), -1), reply(5, reply(), 1, 0)},
}

// rightReplies are replies that the scripts do make.
var rightReplies = map[string][]any{
	"acquire": {
		int64(leastToken), int64(TokenLimit), reply(1, 5, 3), reply(0, 5, 0, "o"), reply(0, -1, 1, ""), reply(0, int64(math.MaxInt64), 0, "o"), reply(-1, 0),
		reply(-2, 0), reply(-3, 17),
	},
	"queue_acquire":        {int64(leastToken), reply(1, 5), reply(1, 5, 4), reply(0, -1, 3, int64(1795880484326213), 7, 1, "o"), reply(-1), reply(-2)},
	"queue_heartbeat":      {reply(5, 0, 0, -1, 7, ""), reply(-1, 5, 1, 0, 0, "o")},
	"force_holder":         {reply(0, -1), reply(1, -1), reply(1001, 2000), reply(0, 3000)},
	"renew":                {int64(-1), int64(0), int64(1), int64(2), int64(3), int64(4), int64(5)},
	"inspect":              {reply(-2, reply(), 5, -1, reply(), reply(), reply(), reply(), 0, 0, reply())},
	"inspect with one key": {reply(-2, reply(), 5), reply(5, reply("o", "1", "mode", "5000", "token", "7"), 5)},
}

// TestRepliesAreChecked: a reply that no script makes is refused, and one that a script makes is read.
func TestRepliesAreChecked(t *testing.T) {
	t.Parallel()
	for script, decode := range decoders {
		for _, r := range wrongReplies[script] {
			if got, err := decode(r); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("%s: %s is read as %+v, error %v", script, describe(r), got, err)
			}
		}
		for _, r := range rightReplies[script] {
			switch _, err := decode(r); {
			case script == "renew" && r.(int64) <= 0: // the error is the cause of a loss
			case err != nil:
				t.Errorf("%s: %v", script, err)
			}
		}
		if len(wrongReplies[script]) == 0 || len(rightReplies[script]) == 0 {
			t.Errorf("%s has no replies", script)
		}
	}
}

// TestImpossibleNumbers: the state of a lock is read without the numbers that no script writes.
func TestImpossibleNumbers(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"-1", "9223372036854775807", "9007199254740993", "-9223372036854775808", "1e9", "inf", "x", ""} {
		for kind, r := range map[string][]any{
			"exclusive": reply(5000, reply("mode", "fair", "exclusive_owner", "o", "exclusive_until", "9000", "o", number, "token", number, "granted", number),
				5, 0, reply(), reply(), reply(), reply(), 0, 0, reply()),
			"shares": reply(5000, reply("mode", "reading", "has_shares", "2", "share:o", "0 o", "read:o", number+" "+number+" "+number, "permits:o", number+" "+number),
				5, 0, reply("o", "9000"), reply(), reply(), reply(), 1, 0, reply("o", number)),
			"compact": reply(5000, reply("mode", "semaphore:"+number+":"+number+" 5000 5", "o", "1"), 5, 0, reply(), reply(), reply(), reply(), 0, 0, reply()),
			"queue": reply(5000, reply("mode", "fair", "exclusive_owner", "o", "exclusive_until", "9000", "o", "1", "token", "5", "granted", "5"),
				5, 0, reply(), reply("w", "7"), reply(), reply("w", "9000 5000 semaphore:"+number+":"+number+" w"), 0, 1, reply()),
		} {
			s, err := readSnapshot(r, true)
			if err != nil {
				t.Fatal(err)
			}
			state := s.state(10)
			for _, h := range state.Holders {
				if h.Token < 0 || h.Token > TokenLimit || h.Holds < 0 || int64(h.Holds) > maxExact || h.Permits < 0 || h.Permits > MaxPermits || h.Limit < 0 ||
					h.Limit > MaxLimit || h.Slot < 0 || h.Slot >= MaxLimit || h.Granted.Year() > 2300 || !h.Granted.IsZero() && h.Granted.Year() < 1970 {
					t.Errorf("%s: %q is read as %+v", kind, number, h)
				}
			}
			for _, w := range state.Queue {
				if w.Permits < 0 || w.Permits > MaxPermits || w.Limit < 0 || w.Limit > MaxLimit {
					t.Errorf("%s: %q is read as %+v", kind, number, w)
				}
			}
		}
	}
}

// TestUnexpectedIsShort: the error for an unexpected reply has a bounded text without control characters.
func TestUnexpectedIsShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b[2J\u202e", 1<<20)
	for _, r := range []any{long, reply(long, long), reply(reply(long)), make([]any, 1<<20)} {
		text := Unexpected(r).Error()
		if len(text) > 2000 || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%d bytes: %.100q", len(text), text)
		}
	}
}

// FuzzReplies makes replies of any shape. No decoder may panic, accept a token that is none, or an impossible time.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{90, 3, 50, 1, 50, 5, 50, 0})
	f.Add([]byte{90, 6, 50, 0, 50, 5, 50, 0, 50, 0, 50, 0, 50, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		r := madeReply(&program, 3)
		for script, decode := range decoders {
			got, err := decode(r)
			if err != nil {
				continue
			}
			switch g := got.(type) {
			case Result:
				if g.Granted && (g.Token < 1 || g.Token > TokenLimit) {
					t.Errorf("%s: %s grants token %d", script, describe(r), g.Token)
				}
				if g.HolderTTL > longestTTL || g.Ahead < 0 || g.Slot < 0 || g.LastToken > TokenLimit {
					t.Errorf("%s: %s is read as %+v", script, describe(r), g)
				}
			case Leader:
				if !reflect.DeepEqual(g, Leader{}) && (g.Token < 1 || g.Token > TokenLimit || g.Granted.Before(time.Unix(0, 0))) {
					t.Errorf("%s: %s is read as %+v", script, describe(r), g)
				}
			}
		}
	})
}

// madeReply makes a reply of the first bytes of a program, and takes these from it.
func madeReply(program *[]byte, depth int) any {
	next := func() byte {
		if len(*program) == 0 {
			return 0
		}
		b := (*program)[0]
		*program = (*program)[1:]
		return b
	}
	numbers := []int64{math.MinInt64, -9, -3, -2, -1, 0, 1, 2, 3, 5, MaxLimit, TokenLimit, TokenLimit + 1, math.MaxInt64}
	switch kind := next(); {
	case kind < 40 || depth == 0 && kind < 140:
		return numbers[int(next())%len(numbers)]
	case kind < 80:
		return int64(int8(next()))
	case kind < 140:
		list := make([]any, next()%13)
		for i := range list {
			list[i] = madeReply(program, depth-1)
		}
		return list
	case kind < 240:
		texts := []string{"", "o", "mode", "token", "semaphore:2:1 5", "9223372036854775807", "fair 5", "share:o", "read:o", "1 5 5"}
		return texts[int(next())%len(texts)]
	}
	return nil
}

// TestSlotOutOfRange: a slot is read only for a semaphore, and only one that the semaphore has. An owner that had permits before may
// have got them by a request with a larger limit.
func TestSlotOutOfRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slot    int
		slots   int
		refused bool
	}{
		{0, 3, true}, // the script leaves it out
		{-1, 3, true},
		{1, 3, false},
		{2, 3, false},
		{3, 3, true},
		{1, 1, true},
		{1, 0, true}, // no semaphore
		{MaxLimit - 1, MaxLimit, false},
		{MaxLimit, MaxLimit, true},
	} {
		result, _, err := readQueueReply(reply(1, 5, c.slot), c.slots)
		if refused := err != nil; refused != c.refused || !refused && result.Slot != c.slot {
			t.Errorf("slot %d of %d: %+v, %v", c.slot, c.slots, result, err)
		}
	}
}

// TestSlotsOfRequest: a request that can only be granted anew gets a slot below its own limit.
func TestSlotsOfRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit     int
		owner, id string
		want      int
	}{{0, "c:1", "c:1", 0}, {0, "o", "c:1", 0}, {3, "c:1", "c:1", 3}, {3, "o", "c:1", MaxLimit}} {
		h := &Hold{Owner: c.owner, Limit: c.limit}
		h.SetID(c.id)
		if got := h.Slots(); got != c.want {
			t.Errorf("limit %d, owner %s, id %s: %d slots, want %d", c.limit, c.owner, c.id, got, c.want)
		}
	}
}
