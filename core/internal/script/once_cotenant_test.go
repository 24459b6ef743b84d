package script_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// A coTenant is another program of the same Redis, which writes anything to the keys of a record. Scripts may refuse that, but they
// must do a bounded amount of work, and what they reply must be refused or true.
type onceCoTenant struct {
	rdb      *redis.Client
	strategy *script.Once
	keys     script.Keys
	group    script.Group
	first    *script.Hold // the attempt that the state is prepared with
	second   *script.Hold // another attempt
	resolver *script.Hold
	token    int64 // of first
}

// newCoTenant returns a co-tenant of a server that all calls share.
func newOnceCoTenant(t testing.TB) *onceCoTenant {
	t.Helper()
	server := testkit.Start(t)
	exec := transport.NewExecutor(server.Client(), transport.Background{Now: keepalive.SystemClock}, nil)
	t.Cleanup(func() { exec.Nodes.Close(time.Second) })
	group, _ := script.GroupKey("lock:", "{group}key")
	return &onceCoTenant{
		rdb: server.Client(), keys: script.NewKeys("lock:", "{group}key").Once(),
		group: script.Group{Key: group, MaxRecords: 1000},
		strategy: &script.Once{Instance: &script.Instance{
			Exec: exec, IDs: &script.IDs{Client: "c"}, Now: keepalive.SystemClock, PublishVerbArg: "PUBLISH",
			ClientNumberArg: "7", PublishRefused: func() {},
		}},
	}
}

// hold returns an attempt with that number.
func (c *onceCoTenant) hold(number int, grouped bool) *script.Hold {
	terms := &script.Terms{
		Retention: time.Hour, Fingerprint: []byte("print"), MaxValue: 1000, Note: "note", Instance: "web-1:7", Label: "label",
		HoldFailures: number == 1,
	}
	if grouped {
		terms.Grouped, terms.Group = true, c.group
	}
	h := &script.Hold{Name: "{group}key", Keys: c.keys, TTL: time.Minute, Terms: terms}
	h.SetID(fmt.Sprint("c:", number))
	h.Owner = h.ID
	return h
}

// prepare gives the record a state: of an attempt that is running, has completed, has an unknown outcome or was discarded.
func (c *onceCoTenant) prepare(ctx context.Context, state int, grouped bool) error {
	if err := c.rdb.FlushAll(ctx).Err(); err != nil {
		return err
	}
	c.first, c.second, c.resolver = c.hold(1, grouped), c.hold(2, grouped), c.hold(3, grouped)
	begun, err := c.strategy.Acquire(ctx, c.first, script.Wanted{})
	if err != nil {
		return err
	}
	c.token = begun.Token
	switch state % 4 {
	case 1:
		_, err = c.strategy.Complete(ctx, c.first, c.token, 1, []byte("value"))
	case 2:
		_, err = c.strategy.Hold(ctx, c.first, c.token, 1, "reason")
	case 3:
		_, err = c.strategy.Discard(ctx, c.first, script.HeldByCaller)
	}
	return err
}

// written are the values that a co-tenant writes to fields, strings, members and scores.
var writtenToOnce = []string{
	"", "x", "0", "-1", "1", "5", "1.5", "0x10", "running", "completed", "unknown", "retry", "nan", "inf", "-inf", "1e308", "4398046511104",
	"2147483647", "9007194959773697", "9223372036854775807", "99999999999999999999", "c:1", "c:2", "1000000000001", "1e15",
}

// fields are the fields of a record, and a foreign one.
var fields = []string{
	"state", "id", "attempt", "token", "began", "ended", "ttl", "deadline", "outcome_on_expiry", "declaration", "fingerprint", "value",
	"omitted", "reason", "note", "by", "label", "c:1", "",
}

// many is how many fields or members a co-tenant writes at once.
const many = 3000

// allKeys returns the keys that scripts of the record use.
func (c *onceCoTenant) allKeys() []string {
	return []string{
		c.keys.Lock, c.strategy.TokenKeys.Of(c.keys.Lock), c.first.Released, c.second.Released, c.resolver.Released, c.keys.EndMarks(), c.group.Key,
	}
}

// overwrite writes a value of some type to one of the keys, or to one field or member of it.
func (c *onceCoTenant) overwrite(ctx context.Context, key, kind, place, value int) {
	keys := c.allKeys()
	at, text, where := keys[key%len(keys)], writtenToOnce[value%len(writtenToOnce)], fields[place%len(fields)]
	score, err := strconv.ParseFloat(text, 64)
	if err != nil || score != score {
		score = 5
	}
	switch kind % 10 {
	case 0: // one field, or member, of what is there
		if c.rdb.Type(ctx, at).Val() == "zset" {
			c.rdb.ZAdd(ctx, at, redis.Z{Score: score, Member: c.keys.Lock}, redis.Z{Score: score, Member: where})
			return
		}
		c.rdb.HSet(ctx, at, where, text)
	case 1:
		c.rdb.Del(ctx, at)
		c.rdb.HSet(ctx, at, where, text)
	case 2:
		c.rdb.Set(ctx, at, text, time.Minute)
	case 3:
		c.rdb.Del(ctx, at)
		c.rdb.RPush(ctx, at, where, text)
	case 4:
		c.rdb.Del(ctx, at)
		c.rdb.ZAdd(ctx, at, redis.Z{Score: score, Member: c.keys.Lock}, redis.Z{Score: -score, Member: text}, redis.Z{Score: 1e300, Member: where})
	case 5:
		c.rdb.Del(ctx, at)
		c.rdb.HSet(ctx, at, "state", "running", "id", "c:1", "token", "5", "ttl", "60000", where, text)
	case 6:
		c.rdb.HDel(ctx, at, where)
	case 7: // a million at heart
		var values []any
		for i := range many {
			values = append(values, strconv.Itoa(i), text)
		}
		c.rdb.HSet(ctx, at, values...)
		c.rdb.Expire(ctx, at, time.Minute)
	case 8:
		var members []redis.Z
		for i := range many {
			members = append(members, redis.Z{Score: float64(i) * (1 << 42), Member: i}, redis.Z{Score: float64(i)*(1<<42) + 1e13, Member: -i})
		}
		c.rdb.Del(ctx, at)
		c.rdb.ZAdd(ctx, at, members...)
		c.rdb.Expire(ctx, at, time.Minute)
	case 9: // the longest expiry that Redis has
		c.rdb.Do(ctx, "PEXPIRE", at, "9223370000000000000")
	}
}

// calls are the operations of clients, by number. Each returns what was granted, and the error.
func (c *onceCoTenant) calls() []func(ctx context.Context) (script.Result, error) {
	acquire := func(h *script.Hold) func(ctx context.Context) (script.Result, error) {
		return func(ctx context.Context) (script.Result, error) {
			return c.strategy.Acquire(ctx, h, script.Wanted{})
		}
	}
	do := func(f func(ctx context.Context) error) func(ctx context.Context) (script.Result, error) {
		return func(ctx context.Context) (script.Result, error) { return script.Result{}, f(ctx) }
	}
	end := func(f func(ctx context.Context, h *script.Hold, token int64, number int, content string) error) func(ctx context.Context) (script.Result, error) {
		return do(func(ctx context.Context) error { return f(ctx, c.first, c.token, 1, "content") })
	}
	complete := func(ctx context.Context, h *script.Hold, token int64, number int, content string) error {
		_, err := c.strategy.Complete(ctx, h, token, number, []byte(content))
		return err
	}
	unanswered := func(ctx context.Context, h *script.Hold, token int64, number int, content string) error {
		h.Unanswered++
		return complete(ctx, h, token, number, content)
	}
	return []func(ctx context.Context) (script.Result, error){
		acquire(c.first), acquire(c.second), end(complete), end(unanswered),
		end(func(ctx context.Context, h *script.Hold, token int64, number int, content string) error {
			_, err := c.strategy.Hold(ctx, h, token, number, content)
			return err
		}),
		do(func(ctx context.Context) error {
			_, err := c.strategy.Discard(ctx, c.first, script.NeverHeld)
			return err
		}),
		do(func(ctx context.Context) error {
			_, err := c.strategy.Discard(ctx, c.first, script.HeldByCaller)
			return err
		}),
		do(func(ctx context.Context) error { _, err := c.strategy.Renew(ctx, c.first, time.Minute); return err }),
		do(c.enlist),
		do(func(ctx context.Context) error {
			_, err := c.strategy.SetOutcomeOnExpiry(ctx, c.first, 1, script.ExpiryMeansCompleted)
			return err
		}),
		do(func(ctx context.Context) error { _, err := c.strategy.Peek(ctx, c.keys); return err }),
		do(func(ctx context.Context) error { _, _, err := c.strategy.Summary(ctx, c.keys); return err }),
		do(func(ctx context.Context) error {
			_, _, err := c.strategy.List(ctx, c.group.Key, "lock:", 0)
			return err
		}),
		do(c.resolve), do(c.forget),
	}
}

// enlist extends the membership of the first attempt in its group, if it has one.
func (c *onceCoTenant) enlist(ctx context.Context) error {
	if !c.first.Terms.Grouped {
		return nil
	}
	return c.strategy.Enlist(ctx, c.first)
}

// resolve records an outcome on behalf of an operator.
func (c *onceCoTenant) resolve(ctx context.Context) error {
	seen, err := c.seen(ctx)
	if err != nil {
		return err
	}
	_, err = c.strategy.Resolve(ctx, c.resolver, c.group, seen, []byte("receipt"))
	return err
}

// seen returns what an operator sees of the record.
func (c *onceCoTenant) seen(ctx context.Context) (script.Seen, error) {
	r, err := c.strategy.Peek(ctx, c.keys)
	return script.Seen{State: r.State, Attempt: r.Attempt, Token: r.Token, Ended: r.Ended, OnExpiry: r.OnExpiry}, err
}

// forget deletes the record on behalf of an operator.
func (c *onceCoTenant) forget(ctx context.Context) error {
	seen, err := c.seen(ctx)
	if err != nil {
		return err
	}
	_, err = c.strategy.Forget(ctx, transport.Ack{}, c.keys, c.group, seen, true, c.keys.Released("forgot:c:9"))
	return err
}

// lasting returns the keys without expiry.
func (c *onceCoTenant) lasting(ctx context.Context, stored map[string]string) (keys []string) {
	for key := range stored {
		if c.rdb.PTTL(ctx, key).Val() < 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// mostCommands bounds one operation, however many scripts it takes.
const mostOnceCommands = 2000

// FuzzCoTenant lets a co-tenant write to the keys of a record twice, and one client work with the record after each.
// The operation may be refused as data of another program before it has written anything, and an impossible reply may.
// It grants no token that is none, does a bounded amount of work, and leaves no key without expiry that the co-tenant
// has not made.
func FuzzOnceCoTenant(f *testing.F) {
	// A part of the seeds has each operation on each key, field and text, though not all of them together.
	step := testkit.Rounds(2, 1)
	for operation := range byte(15) { // the score of each member of the marks and of the group
		for key := byte(5); key < 7; key++ {
			scores := 0
			for value, text := range writtenToOnce {
				if score, err := strconv.ParseFloat(text, 64); err == nil && (math.IsInf(score, 0) || score == 1.5 || score == 1e308) {
					if scores++; (int(operation+key)+scores)%step != 0 {
						continue
					}
					f.Add(operation&3, operation, key, byte(0), byte(0), byte(value), byte(0))
					f.Add(operation&3|4, operation, key, byte(4), byte(0), byte(value), byte(0))
				}
			}
		}
	}
	for operation := range byte(15) {
		for key := range byte(7) {
			for kind := (operation + key) % 3; kind < 10; kind += byte(3 * step) {
				f.Add(key+kind, operation, key, kind, operation+kind, 3*operation+kind, kind)
			}
		}
		for field := range byte(len(fields)) {
			for value := range byte(len(writtenToOnce)) {
				if int(operation+field+value)%(15*step) != 0 {
					continue // of the others, the fuzzer finds those that matter
				}
				f.Add(4*value/byte(len(writtenToOnce)), operation, byte(0), byte(0), field, value, value)
			}
		}
	}
	c := newOnceCoTenant(f)
	f.Fuzz(func(t *testing.T, state, operation, key, kind, place, value, next byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.prepare(ctx, int(state), state&4 == 0); err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			c.overwrite(ctx, int(key)+round, int(kind), int(place)+round, int(value)+round*int(next))
			before := testkit.Stored(t, c.rdb, "*")
			lastingBefore := c.lasting(ctx, before)
			testkit.CountCommands(t, c.rdb)
			calls := c.calls()
			result, err := calls[(int(operation)+round)%len(calls)](ctx)
			if commands := testkit.CountCommands(t, c.rdb); commands > mostOnceCommands {
				t.Errorf("round %d: %d commands", round, commands)
			}
			after := testkit.Stored(t, c.rdb, "*")
			for _, at := range c.lasting(ctx, after) {
				if !slices.Contains(lastingBefore, at) {
					t.Errorf("round %d: %s has no expiry", round, at)
				}
			}
			switch {
			case err == nil:
				if result.Granted && (result.Token < 1 || result.Token > script.TokenLimit || result.Attempt < 1) {
					t.Errorf("round %d: granted %+v", round, result)
				}
			case transport.WrongType(err):
				if !maps.Equal(before, after) {
					t.Errorf("round %d: written before it was refused: %v", round, testkit.Changed(before, after))
				}
			case errors.Is(err, transport.ErrNotYet):
			case !strings.Contains(err.Error(), "unexpected reply"):
				t.Errorf("round %d: state %d, operation %d, key %d, kind %d: %v", round, state, operation, key, kind, err)
			}
		}
	})
}
