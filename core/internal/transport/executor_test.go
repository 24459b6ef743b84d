package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// silentClient does not answer before the channel is closed.
type silentClient struct {
	redis.UniversalClient
	answer chan struct{}
}

func (d *silentClient) Process(context.Context, redis.Cmder) error {
	<-d.answer
	return nil
}

// TestEveryWaitEnds: a command whose context never ends, on a client that never gives up, fails after AnswerTimeout.
func TestEveryWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &silentClient{answer: make(chan struct{})}
		e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
		began := time.Now()
		_, err := e.Do(context.Background(), echoScript, []string{"key"})
		if took := time.Since(began); err != ErrNotAnswered || took != AnswerTimeout {
			t.Errorf("%v after %v", err, took)
		}
		close(rdb.answer)
	})
}
