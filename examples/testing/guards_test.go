package shop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/locktest"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

type userKey struct{} // authentication puts the user into the request's context under this key

func routes(locks *core.Client, pay http.Handler) http.Handler {
	user := httplock.ByContext(userKey{})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", httplock.Idempotent(locks, user,
		core.WithFailurePolicy(core.HoldFailures), // a failed run may have charged
	)(pay))
	return mux
}

func TestPaymentIsMadeOnce(t *testing.T) {
	paid := 0
	pay := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { paid++ })
	handler := routes(locktest.New(t), pay)
	for _, replayed := range []string{"", "true"} {
		ctx := context.WithValue(t.Context(), userKey{}, "ada")
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "5f1c")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Idempotency-Replayed"); w.Code != http.StatusOK || got != replayed {
			t.Errorf("status %d, replayed %q, want 200 and %q", w.Code, got, replayed)
		}
	}
	if paid != 1 {
		t.Errorf("paid %d times, want once", paid)
	}
}

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
