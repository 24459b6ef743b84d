package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/seal"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// created is a response as text, as a handler commits it.
const created = "HTTP/1.1 201 Created\nContent-Type: text/plain\nLocation: /payments/7\n\npaid"

// payment is a handler that commits value and answers with created, or with 500 after a commit if it fails.
func payment(s *coretest.Proof, value string, fails bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Handler", "ran")
		if _, err := s.InTx(r.Context(), value); err != nil || fails {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		w.Header().Del("X-Handler")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Location", "/payments/7")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	})
}

func pay(t *testing.T, h http.Handler) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("amount=7"))
	r.Header.Set("Idempotency-Key", `"one-payment"`)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// wantAnswer checks the answer that was stored with the proof, or that there is none.
func wantAnswer(t *testing.T, what string, got *http.Response, stored, replayed bool) {
	t.Helper()
	body, _ := io.ReadAll(got.Body)
	fine := got.StatusCode == http.StatusCreated && string(body) == "paid" && got.Header.Get("Location") == "/payments/7" &&
		(got.Header.Get("Idempotency-Replayed") == "true") == replayed && got.Header.Get("X-Handler") == ""
	if !stored {
		fine = got.StatusCode == http.StatusConflict && strings.Contains(string(body), "already-completed")
	}
	if !fine {
		t.Errorf("%s: %d, %v, %s", what, got.StatusCode, got.Header, body)
	}
}

// TestHTTP: the response is replayed if it was committed with the proof. Otherwise the request gets 409 already-completed.
func TestHTTP(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.ReleaseMode)
	for name, guard := range map[string]func(locks *core.Client, s *coretest.Proof, h http.Handler) http.Handler{
		"net/http": func(locks *core.Client, s *coretest.Proof, h http.Handler) http.Handler {
			return httplock.Idempotent(locks, httplock.Unscoped(), core.WithProof(s))(h)
		},
		"gin": func(locks *core.Client, s *coretest.Proof, h http.Handler) http.Handler {
			router := gin.New()
			router.POST("/payments", ginlock.Idempotent(locks, httplock.Unscoped(), core.WithProof(s)), gin.WrapH(h))
			return router
		},
	} {
		for value, stored := range map[string]bool{created: true, "7": false} {
			rdb, locks, s := start(t)
			wantAnswer(t, name+", first", pay(t, guard(locks, s, payment(s, value, false))), true, false)
			rdb.FlushAll(t.Context())
			wantAnswer(t, name+", record lost", pay(t, guard(locks, s, payment(s, value, false))), stored, true)
			wantAnswer(t, name+", record completed", pay(t, guard(locks, s, payment(s, value, false))), stored, true)

			_, locks, s = start(t)
			if got := pay(t, guard(locks, s, payment(s, value, true))); got.StatusCode != http.StatusInternalServerError {
				t.Errorf("%s: %d after a failure", name, got.StatusCode)
			}
			wantAnswer(t, name+", failed after commit", pay(t, guard(locks, s, payment(s, value, false))), stored, true)

			_, locks, s = start(t)
			fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
			pay(t, guard(locks, s, fails))
			s.GoAway(errors.New("away"))
			got := pay(t, guard(locks, s, payment(s, value, false)))
			if body, _ := io.ReadAll(got.Body); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d, %s", name, got.StatusCode, body)
			}
		}
	}
}

// TestFailOpen: without Redis a guard that fails open runs, and the proof keeps the key from a second commit. That the proof is unreachable
// opens nothing.
func TestFailOpen(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	s := coretest.NewProof()
	const unhurried, short = time.Minute, 100 * time.Millisecond
	on := func(handler http.Handler, limit time.Duration) http.Handler { // of another process
		locks := coretest.NewClient(t, server.Client(), core.WithLogger(nil))
		return httplock.Idempotent(locks, httplock.Unscoped(), core.WithProof(s), httplock.FailOpen(),
			httplock.WithAskTimeout(limit), httplock.WithFinishTimeout(limit))(handler)
	}
	pays := payment(s, created, false)
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	pay(t, on(fails, unhurried))
	s.GoAway(errors.New("connection refused"))
	if got := pay(t, on(pays, unhurried)); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the guard was open for a proof that is away: %d", got.StatusCode)
	}
	s.GoAway(nil)
	server.Kill()
	h := on(pays, short)
	wantAnswer(t, "first", pay(t, h), true, false)
	wantAnswer(t, "same process", pay(t, h), true, true)
	wantAnswer(t, "another process", pay(t, on(pays, short)), true, true)
	if s.Rows() != 1 {
		t.Errorf("%d rows", s.Rows())
	}
}

// TestFailOpenWithHoldFailures: what must not run twice may begin without a record only if its proof covers all that it does.
func TestFailOpenWithHoldFailures(t *testing.T) {
	t.Parallel()
	_, locks, s := start(t)
	guard := func() error {
		_, err := httplock.NewOnce(locks, httplock.ByRoute(), httplock.FailOpen(), core.WithFailurePolicy(core.HoldFailures), core.WithProof(s))
		return err
	}
	coretest.WantInvalid(t, guard(), core.ErrInvalidOption, "FailOpen")
	s.Only = true
	if err := guard(); err != nil {
		t.Error(err)
	}
}

// TestTask: a task that finds its effect is acknowledged, with the result that was committed.
func TestTask(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	guard := asynqlock.Once(locks, asynqlock.ByPayload("order"), core.WithProof(s))
	task := asynq.NewTask("order:pay", []byte(`{"order":7}`))
	fails := true
	h := guard(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		if _, err := s.InTx(ctx, "paid"); err != nil {
			return fmt.Errorf("pay: %w", err)
		}
		if fails {
			return errors.New("the mail was not sent")
		}
		return nil
	}))
	for range 3 {
		if err := h.ProcessTask(t.Context(), task); err != nil {
			t.Error(err)
		}
		rdb.FlushAll(t.Context())
	}
	fails = false
	if err := h.ProcessTask(t.Context(), task); err != nil {
		t.Error(err)
	}
	if s.Rows() != 1 {
		t.Errorf("%d rows", s.Rows())
	}
}

// TestMessage: a message that finds its effect is acknowledged, and so is one whose handler has failed after its commit.
func TestMessage(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	fails := true
	handle := msglock.Once(locks, "billing", func(_ context.Context, m string) (string, error) { return m, nil },
		func(ctx context.Context, _ string) error {
			if _, err := s.InTx(ctx, "paid"); err != nil {
				return fmt.Errorf("pay: %w", err)
			}
			if fails {
				return errors.New("the mail was not sent")
			}
			return nil
		}, core.WithProof(s))
	produce := msglock.OnceValue(locks, "shipping", func(_ context.Context, m string) (string, error) { return m, nil },
		func(ctx context.Context, _ string) (string, error) {
			_, err := s.InTx(ctx, `"shipped"`)
			return "shipped", err
		}, core.WithProof(s))
	for range 3 {
		if err := handle(t.Context(), "order-7"); err != nil {
			t.Error(err)
		}
		if value, err := produce(t.Context(), "order-7"); value != "shipped" || err != nil {
			t.Errorf("%q, %v", value, err)
		}
		rdb.FlushAll(t.Context())
		fails = false
	}
	if s.Rows() != 2 {
		t.Errorf("%d rows", s.Rows())
	}
}

// TestSuccessWithoutProofBehindGuard: the log tells of a success that is not proven, and not of a refusal.
func TestSuccessWithoutProofBehindGuard(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{http.StatusCreated: 1, http.StatusUnprocessableEntity: 0} {
		var log coretest.Record
		_, locks, s := start(t, core.WithLogger(coretest.TextLogger(&log)))
		pay(t, httplock.Idempotent(locks, httplock.Unscoped(), core.WithProof(s))(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })))
		if n := strings.Count(log.String(), "without its transaction"); n != want {
			t.Errorf("status %d: %d lines: %s", status, n, log.String())
		}
	}
}

// TestPlacesTakeProof: guards with records take it, and the others say that they have none.
func TestPlacesTakeProof(t *testing.T) {
	t.Parallel()
	_, locks, s := start(t)
	if _, err := httplock.NewOnce(locks, httplock.ByRoute(), core.WithProof(s)); err != nil {
		t.Error(err)
	}
	_, err := httplock.NewExclusive(locks.Mutex, httplock.ByRoute(), core.WithProof(s))
	coretest.WantInvalid(t, err, core.ErrInvalidOption, "core.WithProof")
}

// TestTick: a run that finds the effect of an earlier attempt of its tick is a run that succeeded, in the history of
// the job, in its log and for hooks. That its function returns the error of the transaction is no failure.
func TestTick(t *testing.T) {
	t.Parallel()
	var log coretest.Record
	ends := make(chan core.RunEnd, 100)
	outcomes := make(chan cronlock.Outcome, 100)
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithLogger(coretest.TextLogger(&log)), core.WithHooks(core.Hooks{
		RunEnd: func(ctx context.Context, end core.RunEnd) {
			run, _ := cronlock.RunFrom(ctx)
			ends <- end
			outcomes <- run.Outcome
		},
	}))
	s := coretest.NewProof()
	c := cron.New(cron.WithLocation(time.UTC))
	_, err := cronlock.AddFunc(c, locks, "@every 1s", "charge", func(ctx context.Context) error {
		s.Commit(seal.RunFrom(ctx).Proving().Key, "of an earlier attempt", "")
		_, err := s.InTx(ctx, "twice")
		return err
	}, core.WithProof(s), cronlock.WithFailover(2))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	defer func() { <-c.Stop().Done() }()
	testkit.Eventually(t, time.Minute, "a run in the history", func() bool {
		runs, err := cronlock.Job(locks, "charge").History(t.Context())
		if err != nil || len(runs) == 0 || runs[0].Outcome == cronlock.Running {
			return false
		}
		if runs[0].Outcome != cronlock.Success || runs[0].Tick.IsZero() {
			t.Errorf("%+v", runs[0])
		}
		return true
	})
	if end, outcome := <-ends, <-outcomes; end.Err != nil || end.State != core.StateCompleted || outcome != cronlock.Success {
		t.Errorf("the hook gets %+v, with the outcome %s", end, outcome)
	}
	if strings.Contains(log.String(), "job failed") {
		t.Errorf("the log has %s", log.String())
	}
}
