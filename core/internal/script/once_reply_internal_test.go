package script

import (
	"math"
	"strings"
	"testing"
)

// onceDecoders are the functions that read replies, by the script.
var onceDecoders = map[string]func(reply any) (any, error){
	"begin": func(reply any) (any, error) { return readBegin(reply) },
	"peek":  func(reply any) (any, error) { return readRecord(reply) },
	"finish": func(reply any) (any, error) {
		return (&Once{Instance: &Instance{PublishRefused: func() {}}}).readEnd(reply)
	},
	"renew": func(reply any) (any, error) { return done(reply, nil) },
	"list": func(reply any) (any, error) {
		read, keys, err := readList(reply, "lock:")
		if len(keys) > read {
			panic("more keys than were read")
		}
		return keys, err
	},
}

const limit = TokenLimit

// wrongOnceReplies are replies that the script never makes, but that a co-tenant's write or another server can cause.
var wrongOnceReplies = map[string][]any{
	"begin": {
		nil, "1", int64(0), int64(1), int64(-1), int64(limit + 1), reply(), reply(0), reply(1), reply(1, 5), reply(1, 5, 1), reply(1, int64(limit+1), 1, 5),
		reply(1, 5, 0, 5), reply(1, 5, int64(math.MaxInt64), 5), reply(0, 5), reply(0, 5, 7), reply(-1), reply(-1, 1), reply(-2), reply(-3),
		reply(-3, "running", 5, 5), reply(-3, "other", 5, 5, reply()), reply(-4, "completed", 5, 5, reply("a")), reply(-5), reply(-6, -1),
		reply(-7, "5"), reply(-8, 5), reply(2, 5, 1, 5),
	},
	"peek":   {nil, reply(), reply(0), reply(1, "", 0, 0, reply()), reply(0, "other", 0, 0, reply()), reply(0, "", 0, 0, reply(1, 2)), reply(0, "", 0, 0)},
	"finish": {nil, "1", int64(-1), int64(3), reply(), reply(1), reply(1, 1), reply(3, 0), reply(0, 5, 0)},
	"renew":  {nil, "1", int64(-1), int64(2), reply(1)},
	"list": {
		nil, int64(0), int64(1), "x", reply(), reply(-1), reply(MaxListed + 1), reply("1"), reply(0, "x"), reply(1, "x", "y"), reply(1, 1),
		reply(1, nil), reply(1, reply("x")),
	},
}

// rightOnceReplies are replies that the scripts do make.
var rightOnceReplies = map[string][]any{
	"begin": {
		int64(leastToken), int64(limit), reply(1, 5, 1, 5), reply(0, 5, "o"), reply(-1, 0), reply(-2, 0), reply(-3, "running", 5, 5, reply("state", "running")),
		reply(-4, "completed", 0, -1, reply("value", "v")), reply(-5, 5), reply(-6, 5), reply(-7, 5),
	},
	"peek":   {reply(0, "", 0, -2, reply()), reply(0, "retry", 0, 5, reply("token", "5"))},
	"finish": {int64(0), int64(1), int64(2), reply(1, 0), reply(2, 0), reply(0, 0)},
	"renew":  {int64(0), int64(1)},
	"list":   {reply(0), reply(1), reply(1, "x"), reply(3, "holdfast:once=lock:x", "y"), reply(MaxListed)},
}

// TestRepliesAreChecked: a reply that no script makes is refused, and one that a script makes is read.
func TestOnceRepliesAreChecked(t *testing.T) {
	t.Parallel()
	for script, decode := range onceDecoders {
		for _, r := range wrongOnceReplies[script] {
			if got, err := decode(r); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("%s: %v is read as %+v, error %v", script, r, got, err)
			}
		}
		for _, r := range rightOnceReplies[script] {
			if _, err := decode(r); err != nil {
				t.Errorf("%s: %v", script, err)
			}
		}
	}
}

// TestImpossibleFields: a record with numbers that no script writes is read without them.
func TestImpossibleFields(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"-1", "9223372036854775807", "9007194959773697", "1e9", "x", ""} {
		r, err := readRecord(reply(0, "unknown", 0, 5, reply("token", number, "attempt", number, "began", number, "ended", number)))
		if err != nil {
			t.Fatal(err)
		}
		if r.Token != 0 || r.Attempt != 0 || !r.Began.IsZero() || !r.Ended.IsZero() {
			t.Errorf("%q is read as token %d, attempt %d, began %v and ended %v", number, r.Token, r.Attempt, r.Began, r.Ended)
		}
	}
}

// FuzzBegin makes replies of begin.lua of any numbers and texts. None may grant a token that is none.
func FuzzBegin(f *testing.F) {
	f.Add(int64(1), int64(5), int64(1), int64(5), "running", "token", "5", uint8(4))
	f.Add(int64(-3), int64(5), int64(1), int64(5), "running", "token", "5", uint8(9))
	f.Fuzz(func(t *testing.T, a, b, c, d int64, state, field, value string, length uint8) {
		list := []any{a, b, c, d}
		switch length % 10 {
		case 5, 6:
			list = []any{a, b, state}
		case 7, 8, 9:
			list = []any{a, state, b, c, []any{field, value, "attempt", value}}
		}
		list = list[:min(int(length%10), len(list))]
		for script, decode := range onceDecoders {
			got, err := decode(list)
			if err != nil {
				continue
			}
			if g, ok := got.(Result); ok && g.Granted && (g.Token < 1 || g.Token > limit || g.Attempt < 1) {
				t.Errorf("%s: %v is read as %+v", script, list, g)
			}
			if r, ok := got.(Record); ok && (r.Token < 0 || r.Token > limit || r.Attempt < 0) {
				t.Errorf("%s: %v is read as %+v", script, list, r)
			}
		}
	})
}
