package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestConnectDeadlineDuration: one timer serves all commands, and each of them has the whole directConnectTimeout.
func TestConnectDeadlineDuration(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{
		"first": 0, "at once": time.Nanosecond, "before the timer fires": directConnectTimeout / 2,
		"with it": directConnectTimeout, "after it": 3 * directConnectTimeout,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d connectDeadline
				c := &Command{ctx: context.Background()}
				if pause > 0 {
					d.watch(c)
					d.unwatch(c)
					time.Sleep(pause)
				}
				d.watch(c)
				watched := time.Now()
				<-c.ctx.Done()
				if took := time.Since(watched); took != directConnectTimeout {
					t.Errorf("ended after %v, want %v", took, directConnectTimeout)
				}
				if err := c.ctx.Err(); err != errConnectTimeout {
					t.Errorf("ended by %v", err)
				}
				d.unwatch(c)
				d.watch(c)
				if err := c.ctx.Err(); err != nil {
					t.Errorf("the next command began with %v", err)
				}
				d.unwatch(c)
			})
		})
	}
}

// TestDirectPathKeepsDeadlines: a command takes the direct path only if both of its timeouts end before the deadline of the
// caller.
func TestDirectPathKeepsDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &directPath{rdb: new(redis.Client), start: time.Now()}
		p.fastUntil.Store(int64(time.Hour))
		for left, want := range map[time.Duration]bool{
			directConnectTimeout + directTimeout: true, directConnectTimeout + directTimeout - 1: false, directTimeout: false, 0: false,
		} {
			ctx, cancel := context.WithTimeout(context.Background(), left)
			c := &Command{ctx: ctx, node: &node{commands: newBatchQueue(1, nil, nil)}}
			if reserved := p.tryReserve(c, p.now()); reserved != want {
				t.Errorf("%v before its deadline: reserved %v", left, reserved)
			}
			cancel()
		}
	})
}
