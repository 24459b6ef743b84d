package outage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// foreignTokens are what another program may have written as the last token. The numbers of Lua are exact up to 2^53, so a
// grant that counted on from these would have the token of the grant before it, or none.
var foreignTokens = []string{"9007199254740993", "18000000000000000", "9223372036854775807", "1e300", "inf", "-1", "words"}

// drawTokens are all ways to draw a token on one server.
func drawTokens(t *testing.T, locks *core.Client) map[string]func() int64 {
	t.Helper()
	draw := make(map[string]func() int64)
	for name, lock := range map[string]*core.Lock{
		"mutex": locks.Mutex("a"), "fair": locks.Fair("b"), "read": locks.Read("c"), "write": locks.Write("c"),
		"semaphore": locks.Semaphore("d", 2), "joined": core.Multi(locks.Mutex("e"), locks.Mutex("f")),
		"joined of two kinds": core.Multi(locks.Mutex("{g}1"), locks.Fair("{g}2")),
	} {
		draw[name] = func() int64 {
			lease := coretest.MustLock(t, lock)
			defer coretest.Unlock(t, lease)
			return lease.Token()
		}
	}
	for name, once := range map[string]*core.Once{
		"attempts": locks.Once("h"), "attempts with a quota": locks.Once("{i}1", core.WithQuota(9)),
	} {
		draw[name] = func() int64 {
			attempt := coretest.MustBegin(t, once)
			if err := attempt.Release(context.Background()); err != nil {
				t.Error(err)
			}
			return attempt.Token()
		}
	}
	return draw
}

// TestForeignLastToken: whatever another program has written as the last token, tokens follow the server's time, and grow.
func TestForeignLastToken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	var last int64
	for name, draw := range drawTokens(t, locks) {
		for _, foreign := range foreignTokens {
			for _, ttl := range []time.Duration{0, time.Hour, 2 * time.Hour} {
				rdb.Set(ctx, "holdfast:token", foreign, ttl)
				for range 2 {
					token := draw()
					if token <= last || token > time.Now().Add(time.Hour).UnixMicro() {
						t.Errorf("%s after %s, kept for %v: token %d after %d", name, foreign, ttl, token, last)
					}
					last = token
				}
			}
		}
	}
}

// TestForeignTokenOfARecord: a record keeps the token of its last attempt, and must not bring back one of another program.
func TestForeignTokenOfARecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for _, foreign := range foreignTokens[:5] {
		once := locks.Once(fmt.Sprint("record ", foreign))
		if err := coretest.MustBegin(t, once).Release(ctx); err != nil {
			t.Fatal(err)
		}
		if rdb.HSet(ctx, coretest.RecordOf(once.Key()), "token", foreign).Err() != nil {
			t.Fatal("the record is not there")
		}
		attempt := coretest.MustBegin(t, once)
		if latest := time.Now().Add(time.Hour).UnixMicro(); attempt.Token() <= 0 || attempt.Token() > latest {
			t.Errorf("after %s: token %d", foreign, attempt.Token())
		}
	}
}

// TestForeignLastTokenOfARedlock: one server whose last token another program has written does not set the others' too.
func TestForeignLastTokenOfARedlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	for _, some := range []int{1, 5} {
		for _, foreign := range foreignTokens {
			var last int64
			for _, rdb := range five.Looks[:some] {
				rdb.Set(ctx, "holdfast:token", foreign, redis.KeepTTL)
			}
			for range 2 {
				lease := coretest.MustLock(t, r.Mutex("name"))
				if lease.Token() <= last || lease.Token() > time.Now().Add(time.Hour).UnixMicro() {
					t.Errorf("after %s on %d servers: token %d after %d", foreign, some, lease.Token(), last)
				}
				last = lease.Token()
				coretest.Unlock(t, lease)
			}
		}
	}
}
