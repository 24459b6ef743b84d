package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// deaf is a Redis that answers when told.
type deaf struct {
	redis.UniversalClient
	answer chan struct{}
}

func (d *deaf) Process(context.Context, redis.Cmder) error {
	<-d.answer
	return nil
}

// TestNobodyWaitsForEver: not even who could, for a client that does not give up.
func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &deaf{answer: make(chan struct{})}
		e := NewExecutor(rdb, Background{Now: clock.System}, nil)
		began := time.Now()
		_, err := e.Do(context.Background(), echoScript, []string{"key"})
		if took := time.Since(began); err != ErrNotAnswered || took != AnswerTimeout {
			t.Errorf("%v after %v", err, took)
		}
		close(rdb.answer)
	})
}
