package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestLeashHasItsLength: one timer looks after all calls, and each has as long as the one for which it was set.
func TestLeashHasItsLength(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{
		"first": 0, "at once": time.Nanosecond, "before the timer goes off": briskConnect / 2,
		"with it": briskConnect, "after it": 3 * briskConnect,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l leashes
				c := &call{ctx: context.Background()}
				if pause > 0 {
					l.tie(c)
					l.untie(c)
					time.Sleep(pause)
				}
				l.tie(c)
				tied := time.Now()
				<-c.ctx.Done()
				if took := time.Since(tied); took != briskConnect {
					t.Errorf("ended after %v, want %v", took, briskConnect)
				}
				if err := c.ctx.Err(); err != errOverdue {
					t.Errorf("ended by %v", err)
				}
				l.untie(c)
				l.tie(c)
				if err := c.ctx.Err(); err != nil {
					t.Errorf("the next call began with %v", err)
				}
				l.untie(c)
			})
		})
	}
}

// TestShortWayKeepsDeadlines: a call may take it if it would end in time, whatever becomes of connection and answer.
func TestShortWayKeepsDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &brisk{rdb: new(redis.Client), start: time.Now()}
		b.until.Store(int64(time.Hour))
		for left, want := range map[time.Duration]bool{
			briskConnect + briskTimeout: true, briskConnect + briskTimeout - 1: false, briskTimeout: false, 0: false,
		} {
			ctx, cancel := context.WithTimeout(context.Background(), left)
			c := &call{ctx: ctx, way: &node{calls: newLane(1, nil)}}
			if took := b.takeOff(c); took != want {
				t.Errorf("%v before its deadline: took off %v", left, took)
			}
			cancel()
		}
	})
}
