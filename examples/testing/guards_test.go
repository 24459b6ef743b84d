package shop

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/locktest"
)

func TestReportRunsOnceANight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := locktest.Start(t)
		var runs atomic.Int32
		for range 2 { // replicas
			c := cron.New(cron.WithLocation(time.UTC))
			_, err := cronlock.AddFunc(c, server.NewClient(), "0 3 * * *", "report", func(context.Context) error {
				runs.Add(1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			c.Start()
			defer func() { <-c.Stop().Done() }()
		}
		time.Sleep(3 * 24 * time.Hour)
		if runs.Load() != 3 {
			t.Errorf("%d runs in three nights, want 3", runs.Load())
		}
	})
}

func TestReceiptIsSentOnce(t *testing.T) {
	sent := 0
	send := func(context.Context, *asynq.Task) error { sent++; return nil }
	handler := asynqlock.Once(locktest.New(t), asynqlock.ByPayload("order"))(asynq.HandlerFunc(send))
	for range 2 { // deliveries
		task := asynq.NewTask("receipt:send", []byte(`{"order":42}`))
		if err := handler.ProcessTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if sent != 1 {
		t.Errorf("sent %d times, want once", sent)
	}
}
