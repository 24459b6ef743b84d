package script_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// A coTenant is another program of the same Redis, which writes anything to the keys of a lock. Scripts may fail then, but they must
// do a bounded amount of work, and what they reply must be refused or true.
type coTenant struct {
	rdb      *redis.Client
	instance *script.Instance
	keys     script.Keys
	holds    []*script.Hold // of owners a, b and c
}

// newCoTenant returns a co-tenant of a server that all calls share.
func newCoTenant(t testing.TB) *coTenant {
	t.Helper()
	server := testkit.Start(t)
	exec := transport.NewExecutor(server.Client(), transport.Background{Now: keepalive.SystemClock}, nil)
	t.Cleanup(func() { exec.Nodes.Close(time.Second) })
	return &coTenant{rdb: server.Client(), instance: &script.Instance{
		Exec: exec, IDs: &script.IDs{Client: "c"}, Now: keepalive.SystemClock, PublishVerbArg: "PUBLISH",
		ClientNumberArg: "7", PublishRefused: func() {},
	}}
}

// strategies are those that have one Redis, by number.
func (c *coTenant) strategies() []script.Strategy {
	queue := func(mode string) script.Queue {
		return script.Queue{Instance: c.instance, Mode: mode}
	}
	return []script.Strategy{
		script.Mutex{Instance: c.instance},
		queue("fair"), queue("writing"), queue("reading"), queue("semaphore"),
	}
}

// prepare gives the lock a state: held by a, entered by a again, and waited for by b and c.
func (c *coTenant) prepare(ctx context.Context, strategy script.Strategy, entries, waiters int) error {
	if err := c.rdb.FlushAll(ctx).Err(); err != nil {
		return err
	}
	c.holds = nil
	for i := range 3 {
		h := &script.Hold{Name: "name", Keys: c.keys, TTL: time.Minute}
		if strategy.Name() == "semaphore" {
			h.Permits, h.Limit = 2, 3
		}
		h.SetID(fmt.Sprint("c:", i+1))
		h.Owner = h.ID
		c.holds = append(c.holds, h)
	}
	for i := range min(1+waiters, 3) {
		if _, err := strategy.Acquire(ctx, c.holds[i], script.Wanted{Place: true, Registration: true}); err != nil {
			return err
		}
	}
	for i := range entries {
		again := *c.holds[0]
		again.SetID(fmt.Sprint("c:", 10+i))
		if _, err := strategy.Acquire(ctx, &again, script.Wanted{}); err != nil {
			return err
		}
	}
	return nil
}

// written are the values that a co-tenant writes to fields, strings, members and scores.
var written = []string{
	"", "x", "0", "-1", "1", "5", "mutex", "fair", "reading", "writing", "60000", "fair 60000", "reading 60000", "semaphore:3:2 60000",
	"semaphore:300000:300000 60000", "semaphore:999999999:999999999 60000", "300000", "5 300000", "3 2", "1 300000", "0 c:1", "1 5 5", "x x x",
	"9007194959773697", "9223372036854775807", "1e308", "inf", "-inf", "nan", "1.5", "-7.5", "1e300", "99999999999999999999", "c:1", "2", "0 c:1 300000", "99999999999999 60000 semaphore:9:9000000 c:2",
	"+Infinity", "-0", "0x1p60", "5e-324", "9007194959773696.5", "-1.0000000000000002", "999999.5", "1 inf inf", "inf 60000 semaphore:9:2 c:2", "fair inf", "semaphore:inf:2 60000",
	strings.Repeat("1", 40_000) + "x",
}

// addScore gives a member of a sorted set the score that a text says, as Redis reads it. It returns false if the text
// is no score, which Redis refuses.
func (c *coTenant) addScore(ctx context.Context, at, text, member string) bool {
	return c.rdb.Do(ctx, "ZADD", at, text, member).Err() == nil
}

// overwrite writes a value of some type to one of the keys of the lock, or to one field or member of it.
func (c *coTenant) overwrite(ctx context.Context, key, kind, place, value int) {
	keys := []string{
		c.keys.Lock, c.keys.ShareExpiries(), c.keys.ExclusiveQueue(), c.keys.SharedQueue(), c.keys.Waiters(), c.keys.Slots(),
		c.keys.WaitingClients, c.keys.Forced(), c.instance.TokenKeys.Of(c.keys.Lock), c.holds[0].Released,
	}
	at, text := keys[key%len(keys)], written[value%len(written)]
	places := []string{
		"mode", "token", "ttl", "granted", "exclusive_owner", "exclusive_until", "has_shares", "grant_id", "min_hold_until", "readers_first_until",
		"leader_value", "c:1", "c:2", "", "hold:c:1", "share:c:1", "read:c:1", "permits:c:1", "permits:x", "1:c:1", "min_hold:c:1", "7", "*",
		"token_committed", "has_waiting_clients",
	}
	where := places[place%len(places)]
	switch kind % 9 {
	case 0: // one field, or member, of what is there
		if c.rdb.Type(ctx, at).Val() == "zset" {
			_ = c.addScore(ctx, at, text, where) || c.addScore(ctx, at, "inf", where)
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
		c.rdb.ZAdd(ctx, at, redis.Z{Score: 5, Member: where}, redis.Z{Score: 1e300, Member: text})
	case 5:
		c.rdb.Del(ctx, at)
		c.rdb.HSet(ctx, at, "o", "1", "mode", text, "token", "5")
	case 6:
		c.rdb.HDel(ctx, at, where)
	case 7: // the score of a member that a script wrote, the first or the last
		at, rank := c.sortedSets()[key%5], int64(-(place & 1))
		for _, member := range c.rdb.ZRange(ctx, at, rank, rank).Val() {
			_ = c.addScore(ctx, at, text, member) || c.addScore(ctx, at, []string{"inf", "-inf"}[value&1], member)
		}
	case 8: // one member more, of any score
		c.addScore(ctx, c.sortedSets()[key%5], text, where)
	}
}

// sortedSets returns the keys at which a lock has sorted sets.
func (c *coTenant) sortedSets() []string {
	return []string{c.keys.ShareExpiries(), c.keys.ExclusiveQueue(), c.keys.SharedQueue(), c.keys.Slots(), c.keys.WaitingClients}
}

// calls are the operations of clients, by number. Each returns what was granted, and the error.
func (c *coTenant) calls(strategy script.Strategy) []func(ctx context.Context) (int64, error) {
	acquire := func(i int, want script.Wanted) func(ctx context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			h := *c.holds[i]
			if i == 0 {
				h.SetID("c:20")
			}
			result, err := strategy.Acquire(ctx, &h, want)
			if err == nil && !result.Granted {
				return 1, nil
			}
			return result.Token, err
		}
	}
	do := func(f func(ctx context.Context) error) func(ctx context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) { return 1, f(ctx) }
	}
	release := func(i int, why script.ReleaseReason) func(ctx context.Context) (int64, error) {
		return do(func(ctx context.Context) error { _, err := strategy.Release(ctx, c.holds[i], why); return err })
	}
	return []func(ctx context.Context) (int64, error){
		acquire(0, script.Wanted{}), acquire(1, script.Wanted{Place: true}), acquire(2, script.Wanted{Woken: true}),
		release(0, script.HeldByCaller), release(1, script.NeverHeld), release(2, script.OnlyQueued),
		do(func(ctx context.Context) error { _, err := strategy.Renew(ctx, c.holds[0], time.Minute); return err }),
		do(func(ctx context.Context) error { _, err := strategy.Raise(ctx, c.holds[0], 9e15); return err }),
		do(func(ctx context.Context) error {
			_, _, err := c.instance.Force(ctx, c.keys, c.instance.IDs.Next(), nil)
			return err
		}),
		do(func(ctx context.Context) error {
			_, _, err := c.instance.Force(ctx, c.keys, c.instance.IDs.Next(), []script.Holder{{Owner: "c:1", Token: 5}})
			return err
		}),
		do(func(ctx context.Context) error { _, err := c.instance.ForceHolder(ctx, c.keys, "c:1", 0); return err }),
		do(func(ctx context.Context) error { _, err := c.instance.State(ctx, c.keys, 100); return err }),
		do(func(ctx context.Context) error { _, err := c.instance.Summary(ctx, c.keys, 100); return err }),
		do(func(ctx context.Context) error { _, err := c.instance.Leader(ctx, c.keys); return err }),
		do(func(ctx context.Context) error {
			_, err := c.instance.Proclaim(ctx, c.keys, "c:1", 5, 1, "v")
			return err
		}),
		do(func(ctx context.Context) error {
			return c.instance.PassTurn(ctx, c.keys.Lock, c.keys.WaitingClients, "7")
		}),
		do(func(ctx context.Context) error {
			beat := c.instance.Heartbeat(c.keys, "c:2", "c:3")
			if err := c.instance.Exec.Run(ctx, beat); err != nil {
				return err
			}
			_, _, err := script.ReadHeartbeat(beat.Reply, 2)
			return err
		}),
	}
}

// elements returns how many fields and members the keys of the lock have.
func (c *coTenant) elements(ctx context.Context) (n int64) {
	for _, key := range []string{c.keys.Lock, c.keys.Waiters(), c.keys.Forced()} {
		n += c.rdb.HLen(ctx, key).Val()
	}
	for _, key := range []string{c.keys.ShareExpiries(), c.keys.ExclusiveQueue(), c.keys.SharedQueue(), c.keys.Slots(), c.keys.WaitingClients} {
		n += c.rdb.ZCard(ctx, key).Val()
	}
	return n
}

// expiring returns the keys that may expire within a call.
func (c *coTenant) expiring(ctx context.Context, stored map[string]string) map[string]bool {
	keys := make(map[string]bool)
	for key := range stored {
		left := c.rdb.PTTL(ctx, key).Val()
		keys[key] = left == -2 || left >= 0 && left < time.Minute/2 // -2: it has expired since
	}
	return keys
}

// isRaw returns true for an error of Redis that is neither a refusal nor a reply that was checked: a script failed halfway.
func isRaw(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !transport.WrongType(err)
}

// Bounds of one operation, however many scripts it takes.
const (
	mostCommands = 5_000
	mostElements = 2 * script.MaxPermits
)

// FuzzCoTenant lets a co-tenant write to the keys of a lock twice, and one client work with the lock after each. The
// operation may fail, but not as an outage, nor by a command that a script gave a number of the co-tenant. If it is
// refused as data of another program, it has written nothing. It grants no token that is none, it does a bounded amount
// of work, and it leaves no key without expiry that the co-tenant has not made.
func FuzzCoTenant(f *testing.F) {
	// A third of the seeds has each operation on each key, and each text in each place, though not all of them together.
	step := testkit.Rounds(3, 1)
	for which := range byte(5) {
		for operation := range byte(17) {
			for set := range byte(5) {
				scores := 0
				for value, text := range written {
					if score, err := strconv.ParseFloat(text, 64); err == nil && (math.IsInf(score, 0) || score != math.Trunc(score)) {
						if scores++; (int(which+operation+set)+scores)%step == 0 {
							f.Add(which, byte(5), operation, set, byte(7+which%2), byte(value), byte(value), byte(0))
						}
					}
				}
			}
		}
	}
	for value := range written {
		for place := range 25 {
			if (value+place)%step == 0 {
				f.Add(byte(value+place), byte(place), byte(value), byte(0), byte(0), byte(place), byte(value), byte(value+place))
			}
		}
		for key := range 10 {
			if value%4 != 0 {
				break // of the others, the fuzzer finds those that matter
			}
			for kind := byte(1); kind < 6; kind++ {
				if (value+key+int(kind))%step == 0 {
					f.Add(byte(value+key), byte(key), byte(value), byte(key), kind, byte(key), byte(value), byte(value+key))
				}
			}
		}
	}
	c := newCoTenant(f)
	c.keys = script.NewKeys("lock:", "name")
	f.Fuzz(func(t *testing.T, which, state, operation, key, kind, place, value, next byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		strategies := c.strategies()
		strategy := strategies[int(which)%len(strategies)]
		if err := c.prepare(ctx, strategy, int(state)&1, int(state)>>1%3); err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			c.overwrite(ctx, int(key)+round, int(kind), int(place)+round, int(value)+round*int(next))
			before, stored := c.elements(ctx), testkit.Stored(t, c.rdb, "*")
			expiring := c.expiring(ctx, stored)
			testkit.CountCommands(t, c.rdb)
			calls := c.calls(strategies[(int(which)+round)%len(strategies)])
			token, err := calls[(int(operation)+round)%len(calls)](ctx)
			if commands := testkit.CountCommands(t, c.rdb); commands > mostCommands {
				t.Errorf("round %d: %d commands", round, commands)
			}
			if added := c.elements(ctx) - before; added > mostElements {
				t.Errorf("round %d: %d fields and members more", round, added)
			}
			switch {
			case err != nil && transport.Transient(err):
				t.Errorf("round %d: an outage: %v", round, err)
			case err == nil && (token < 1 || token > script.TokenLimit):
				t.Errorf("round %d: granted with token %d", round, token)
			case err != nil && transport.WrongType(err):
				after := testkit.Stored(t, c.rdb, "*")
				for _, at := range testkit.Changed(stored, after) {
					if _, exists := after[at]; !exists && expiring[at] {
						continue // with the TTL that the co-tenant has chosen
					}
					t.Errorf("round %d: %s was written before the refusal: %v", round, at, err)
				}
			case isRaw(err):
				t.Errorf("round %d, operation %d: a command or the script failed: %v", round, (int(operation)+round)%len(calls), err)
			}
		}
	})
}
