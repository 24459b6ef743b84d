package asynqlock

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEnterWithoutPEXPIRE: a line that could not expire is not begun.
func TestEnterWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	if err := rdb.Do(ctx, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "+@all", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	worker := server.Client(func(o *redis.Options) { o.Username, o.Password = "worker", "any" })
	if err := enterScript.Run(ctx, worker, []string{"line"}, "task", 1000).Err(); err == nil {
		t.Error("entered")
	}
	if rdb.Exists(ctx, "line").Val() != 0 {
		t.Error("the line stays for ever")
	}
}

// TestEnterAmongForeignScores: another program gives a task of the line a score that is no time. The line is refused before
// anything is written to it.
func TestEnterAmongForeignScores(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	for _, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -1} {
		for _, member := range []string{"task", "another"} {
			key := fmt.Sprint("line", score, member)
			rdb.ZAdd(ctx, key, redis.Z{Score: score, Member: member})
			before := rdb.Dump(ctx, key).Val()
			reply, err := enterScript.Run(ctx, rdb, []string{key}, "task", 1000).Int64Slice()
			switch {
			case member == "another" && score < 0: // the task comes after it as after any other
				if err != nil || len(reply) != 3 {
					t.Errorf("%s: %v, %v", key, reply, err)
				}
			case !redis.HasErrorPrefix(err, "WRONGTYPE"):
				t.Errorf("%s: %v, %v", key, reply, err)
			case rdb.Dump(ctx, key).Val() != before || rdb.TTL(ctx, key).Val() != -1:
				t.Errorf("%s has changed", key)
			}
		}
	}
}

// TestEnterReplies: a server replies what enter.lua does not.
func TestEnterReplies(t *testing.T) {
	t.Parallel()
	for _, reply := range [][]any{{}, {int64(0)}, {int64(-1), int64(1), int64(1)}, {int64(0), int64(-1), int64(1)}, {int64(0), int64(1 << 53), int64(1)}} {
		rdb := testkit.Start(t).Client()
		rdb.AddHook(replying{reply})
		l := newLine(rdb)
		l.found.Store(true)
		if at, err := l.enter(context.Background(), &visit{ctx: context.Background()}); err == nil {
			t.Errorf("%v: %+v", reply, at)
		}
	}
}

// replying answers each script with a reply.
type replying struct{ reply []any }

func (r replying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r replying) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.Cmd).SetVal(r.reply)
		return nil
	}
}

func (r replying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestPlacesKeepTheOrder: a task that came first asks first, also if one that came later asks already.
func TestPlacesKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all places
		var got []int64
		lock := make(chan struct{}) // has a value when it is free
		wait := func(came int64) {
			p := all.take("key", string(rune('a'+came)), came)
			for p.await(t.Context(), time.Hour) {
				ok := false
				p.request(t.Context(), func(ctx context.Context) {
					select {
					case <-lock:
						ok = true
					case <-ctx.Done():
					}
				})
				if ok {
					got = append(got, came)
					break
				}
			}
			p.leave()
		}
		for _, came := range []int64{5, 3, 4, 9, 1} {
			go wait(came)
			synctest.Wait()
		}
		for range 5 {
			lock <- struct{}{}
			synctest.Wait()
		}
		for i, want := range []int64{1, 3, 4, 5, 9} {
			if got[i] != want {
				t.Fatalf("%v", got)
			}
		}
		if len(all.keys) != 0 {
			t.Errorf("left behind: %v", all.keys)
		}
	})
}

// TestPlacesGiveUp: a task that is not the first one until its time is over leaves, and the next one is not held up.
func TestPlacesGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all places
		first, second := all.take("key", "a", 1), all.take("key", "b", 2)
		if second.await(t.Context(), time.Minute) {
			t.Error("the second is the first")
		}
		third := all.take("key", "c", 3)
		second.leave()
		done := make(chan bool)
		go func() { done <- third.await(t.Context(), time.Hour) }()
		synctest.Wait()
		first.leave()
		if !<-done || !all.has("key", "c") || all.has("key", "a") {
			t.Error("the third is not the first now")
		}
		third.leave()
	})
}

// TestPlaceOvertakenBeforeItsRequest: a task was put in front between the turn of another one and its request, which is not made.
func TestPlaceOvertakenBeforeItsRequest(t *testing.T) {
	t.Parallel()
	var all places
	second := all.take("key", "b", 2)
	if !second.await(t.Context(), time.Minute) {
		t.Fatal("it is alone, and not the first")
	}
	first := all.take("key", "a", 1)
	if !second.request(t.Context(), func(context.Context) { t.Error("it asks") }) {
		t.Error("it is not overtaken")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if second.await(over, time.Minute) {
		t.Error("it is the first, though the other one has not left")
	}
	first.leave()
	second.leave()
}
