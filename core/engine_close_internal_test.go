package core

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestCloseContinuesWhileCommandsAreConfirmed: each pending command takes nearly as long as Close waits for a confirmation. All are
// sent, unless the server refuses them.
func TestCloseContinuesWhileCommandsAreConfirmed(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint("refused: ", refused), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				noClient := struct{ redis.UniversalClient }{}
				e := newEngine(newClientConfig([]Option{WithInstance("")}), nil, drift)
				pending := transport.NewExecutor(noClient, e.work(), nil).PendingOf("key")
				left := 5
				var add func()
				add = func() {
					pending.Add(&transport.PendingCommand{
						Send: func(ctx context.Context) error {
							time.Sleep(acquire.ReleaseTimeout * 2 / 3)
							if refused {
								return transport.WithOutcome(context.Canceled, transport.Rejected)
							}
							return ctx.Err()
						},
						Until: keepalive.Instant(time.Now().Add(time.Hour).UnixNano()),
						Ended: func(error) {
							if left--; left > 0 {
								add()
							}
						},
					})
				}
				add()
				if err := e.close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if (left == 0) == refused {
					t.Errorf("%d of 5 commands are left", left)
				}
			})
		})
	}
}
