package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestConnectDeadlineDuration: one timer looks after all calls, and each has as long as the one for which it was set.
func TestConnectDeadlineDuration(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{
		"first": 0, "at once": time.Nanosecond, "before the timer goes off": directConnectTimeout / 2,
		"with it": directConnectTimeout, "after it": 3 * directConnectTimeout,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l connectDeadline
				c := &Command{ctx: context.Background()}
				if pause > 0 {
					l.watch(c)
					l.unwatch(c)
					time.Sleep(pause)
				}
				l.watch(c)
				tied := time.Now()
				<-c.ctx.Done()
				if took := time.Since(tied); took != directConnectTimeout {
					t.Errorf("ended after %v, want %v", took, directConnectTimeout)
				}
				if err := c.ctx.Err(); err != errConnectTimeout {
					t.Errorf("ended by %v", err)
				}
				l.unwatch(c)
				l.watch(c)
				if err := c.ctx.Err(); err != nil {
					t.Errorf("the next call began with %v", err)
				}
				l.unwatch(c)
			})
		})
	}
}

// TestDirectPathKeepsDeadlines: a call may take it if it would end in time, whatever becomes of connection and answer.
func TestDirectPathKeepsDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &directPath{rdb: new(redis.Client), start: time.Now()}
		b.fastUntil.Store(int64(time.Hour))
		for left, want := range map[time.Duration]bool{
			directConnectTimeout + directTimeout: true, directConnectTimeout + directTimeout - 1: false, directTimeout: false, 0: false,
		} {
			ctx, cancel := context.WithTimeout(context.Background(), left)
			c := &Command{ctx: ctx, node: &node{commands: newBatchQueue(1, nil)}}
			if took := b.tryReserve(c); took != want {
				t.Errorf("%v before its deadline: took off %v", left, took)
			}
			cancel()
		}
	})
}
