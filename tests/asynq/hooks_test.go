package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// heard collects what the hooks of a client are told about tasks.
type heard struct {
	mu        sync.Mutex
	text      diary
	starts    []core.RunStart
	ends      []core.RunEnd
	nots      []core.NotRun
	incidents []core.Incident
}

func (h *heard) hooks() core.Hooks {
	return core.Hooks{
		RunStart: func(ctx context.Context, e core.RunStart) context.Context { hear(h, &h.starts, e); return ctx },
		RunEnd:   func(_ context.Context, e core.RunEnd) { hear(h, &h.ends, e) },
		NotRun:   func(_ context.Context, e core.NotRun) { hear(h, &h.nots, e) },
		Incident: func(_ context.Context, e core.Incident) { hear(h, &h.incidents, e) },
	}
}

func hear[T any](h *heard, list *[]T, event T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, event)
	fmt.Fprintf(&h.text, "%T %+v\n", event, event)
}

// want checks how many events match.
func (h *heard) want(t *testing.T, pattern string, n int) {
	t.Helper()
	text := h.text.String()
	if got := len(regexp.MustCompile(pattern).FindAllString(text, -1)); got != n {
		t.Errorf("told %d times of %s, want %d: %s", got, pattern, n, text)
	}
}

// listening returns a desk and what its hooks hear.
func listening(t *testing.T, opts ...core.Option) (*desk, *heard) {
	t.Helper()
	h := new(heard)
	return newDesk(t, append(opts, core.WithHooks(h.hooks()))...), h
}

// work is what hooks are told about a task of kind.
func work(hash string) core.Work { return core.Work{Place: "task", Label: kind, KeyHash: hash} }

// TestHooksOfRuns: what ran, how it ended, and what came again.
func TestHooksOfRuns(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	info := delivery("1", func(info *asynq.TaskInfo) { info.Queue, info.Retried = "critical", 3 })
	var seen facts
	run := func(err error) {
		_ = d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			seen = factsOf(ctx)
			return err
		}, guard)
	}
	run(errOwn)
	run(nil)
	run(errors.New("it runs again"))
	if len(h.starts) != 2 || len(h.ends) != 2 || len(h.nots) != 1 || len(h.incidents) != 0 {
		t.Fatal(h.text.String())
	}
	if s := h.starts[1]; s.Work != work(seen.hash) || s.Token != seen.token || s.Attempt != 2 || s.Waited <= 0 {
		t.Errorf("start %+v, %+v", s, seen)
	}
	e := h.ends[0]
	if e.Work != work(seen.hash) || e.Token <= 0 || e.Attempt != 1 || e.State != core.StateNone || e.Took <= 0 ||
		!errors.Is(e.Err, errOwn) || e.Panicked {
		t.Errorf("end %+v", e)
	}
	if e = h.ends[1]; e.Token != seen.token || e.Attempt != 2 || e.State != core.StateCompleted || e.Err != nil {
		t.Errorf("end %+v", e)
	}
	if n := h.nots[0]; n.Work != work(seen.hash) || n.Reason != core.ReasonReplayed || n.Attempt != 2 || n.Waited <= 0 || n.Err != nil {
		t.Errorf("replayed %+v", n)
	}
}

// TestHooksOfRefusals: what did not run, and why.
func TestHooksOfRefusals(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	order := asynqlock.ByPayload("order")
	guard := asynqlock.Once(d.locks, order, asynqlock.ComparePayload(true))
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	hash := core.KeyHash(busy.ctx)
	two := delivery("2")
	e := wantDeferred(t, d.deliver(two, receipt("7"), nothing, guard), core.ErrInProgress)
	_ = d.deliver(two, task(kind, `{"order":"7","x":1}`), nothing, guard)
	_ = d.deliver(two, task(kind, `{}`), nothing, guard)
	wantNil(t, core.Hold(busy.ctx, "the handler says so"))
	wantErrors(t, busy.release(), core.ErrOutcomeUnknown)
	_ = d.deliver(two, receipt("7"), nothing, guard)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = deliver(over, two, receipt("8"), nothing, guard)
	for i, want := range []struct {
		reason, hash string
		err          error
	}{
		{asynqlock.ReasonBusy, hash, core.ErrInProgress},
		{asynqlock.ReasonKeyReused, hash, core.ErrFingerprintMismatch},
		{asynqlock.ReasonNoKey, "", asynqlock.ErrNoKey},
		{asynqlock.ReasonUnknown, hash, core.ErrOutcomeUnknown},
		{asynqlock.ReasonEnded, "", context.Canceled},
	} {
		if i >= len(h.nots) {
			t.Fatalf("%d events: %s", len(h.nots), h.text.String())
		}
		n := h.nots[i]
		if n.Reason != want.reason || n.Place != "task" || n.Label != kind || !errors.Is(n.Err, want.err) ||
			want.reason != asynqlock.ReasonEnded && n.Work != work(want.hash) {
			t.Errorf("%s: %+v", want.reason, n)
		}
	}
	n := h.nots[0]
	var deferred *asynqlock.DeferredError
	if n.RetryAfter != e.RetryIn || !errors.As(n.Err, &deferred) {
		t.Errorf("deferred %+v, %+v", n, deferred)
	}
	if len(h.incidents) != 0 {
		t.Error(h.incidents)
	}
}

// TestHooksOfMistakes: a task that cannot get its lock because of a mistake in the program is reported, and so is an outage.
func TestHooksOfMistakes(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	guard := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID())
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	overwriteAll(t.Context(), t, d.rdb, "text", true)
	wantErrors(t, d.deliver(delivery("1"), receipt("7"), nothing, guard), core.ErrWrongType)
	_ = busy.release()
	d.redis.Kill()
	wantDeferred(t, d.deliver(delivery("2"), receipt("7"), nothing, guard), core.ErrUnavailable)
	h.want(t, `core\.NotRun .*Reason:guard-failed `, 1)
	h.want(t, `core\.NotRun .*Reason:unavailable .*RetryAfter:[1-9]`, 1)
}

// TestHooksOfDeclarations: core.Complete and core.Hold are reported with the error that they override.
func TestHooksOfDeclarations(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID())
	wantNil(t, d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		wantNil(t, core.Complete(ctx))
		return errOwn
	}, guard))
	_ = d.deliver(delivery("2"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		return core.Hold(ctx, "the handler says so")
	}, guard)
	if len(h.ends) != 2 || h.ends[0].State != core.StateCompleted || !errors.Is(h.ends[0].Err, errOwn) ||
		h.ends[1].State != core.StateUnknown || !errors.Is(h.ends[1].Err, core.ErrOutcomeUnknown) {
		t.Fatal(h.text.String())
	}
	if r, err := d.locks.Once("asynq:" + h.ends[1].KeyHash).Peek(t.Context()); err != nil || r.Reason != "the handler says so" {
		t.Errorf("the reason is %q, %v", r.Reason, err)
	}
}

// TestHooksOfPanics: a handler that does not return has ended too.
func TestHooksOfPanics(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	for name, guard := range d.guardsOf() {
		h.ends = nil
		panicOf(func() {
			_ = d.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { panic("end") }, guard)
		})
		if len(h.ends) != 1 || !h.ends[0].Panicked || h.ends[0].Err != nil || h.ends[0].State != core.StateNone {
			t.Errorf("%s: %+v", name, h.ends)
		}
	}
}

// TestHooksOfExclusive: it has no attempts and no records.
func TestHooksOfExclusive(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	var seen facts
	wantErrors(t, d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		seen = factsOf(ctx)
		return errOwn
	}, asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID())), errOwn)
	if seen.hash != "" {
		t.Errorf("key hash %q of a run without a record", seen.hash)
	}
	seen.hash = hashOf(t, asynqlock.ByTaskID(), delivery("1"), receipt("7"))
	if len(h.starts) != 1 || h.starts[0].Token != seen.token || seen.token == 0 || h.starts[0].Attempt != 0 ||
		h.starts[0].Work != work(seen.hash) {
		t.Errorf("starts %+v, %+v", h.starts, seen)
	}
	if len(h.ends) != 1 || h.ends[0].Attempt != 0 || h.ends[0].Token != seen.token || h.ends[0].Work != work(seen.hash) ||
		!errors.Is(h.ends[0].Err, errOwn) {
		t.Errorf("ends %+v", h.ends)
	}
}

// TestRunHasTheContextOfRunStart: the handler and the other hooks of its run find what RunStart has put into the context.
func TestRunHasTheContextOfRunStart(t *testing.T) {
	t.Parallel()
	type key struct{}
	var ends, incidents []any
	d := newDesk(t, core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, s core.RunStart) context.Context {
			token, _ := core.TokenFrom(ctx)
			if hash := core.KeyHash(ctx); token != s.Token || hash != "" && hash != s.KeyHash {
				t.Errorf("it is not the context of the run: %d, %+v", token, s)
			}
			return context.WithValue(ctx, key{}, "span")
		},
		RunEnd: func(ctx context.Context, _ core.RunEnd) {
			ends = append(ends, ctx.Value(key{}), ctx.Err())
		},
		Incident: func(ctx context.Context, _ core.Incident) { incidents = append(incidents, ctx.Value(key{}), ctx.Err()) },
	}))
	guards := d.guardsOf(brief)
	for name, guard := range guards {
		ends, incidents = nil, nil
		_ = d.deliver(delivery(name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			if got := ctx.Value(key{}); got != "span" {
				t.Errorf("%s: the handler's context has %v", name, got)
			}
			if name == "once" {
				wantNil(t, forgetRunning(t.Context(), d.locks, asynqlock.ByTaskID(), delivery(name, ofKind)))
			} else {
				_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+hashOf(t, asynqlock.ByTaskID(), delivery(name), receipt("7")))
				wantNil(t, err)
			}
			<-ctx.Done()
			return ctx.Err()
		}, guard)
		if fmt.Sprint(ends, incidents) != "[span <nil>] [span <nil>]" {
			t.Errorf("%s: hooks got %v, %v", name, ends, incidents)
		}
	}
}

// TestHooksOfTicks: a task of a schedule has a tick.
func TestHooksOfTicks(t *testing.T) {
	t.Parallel()
	d, h := listening(t)
	wantNil(t, d.deliver(delivery("cron:report:2026-03-01T03:00:00Z"), receipt("7"), nothing, asynqlock.Once(d.locks, asynqlock.ByTick())))
	if want := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC); len(h.ends) != 1 || !h.starts[0].Due.Equal(want) || !h.ends[0].Due.Equal(want) {
		t.Errorf("%+v", h.ends)
	}
}

// TestRefusedUnguardedRunIsNoIncident: a guard that fails open, but knows another task of the key, defers this one.
func TestRefusedUnguardedRunIsNoIncident(t *testing.T) {
	t.Parallel()
	h := new(heard)
	d := newDesk(t)
	link := d.redis.Relay()
	var log diary
	far := clientOf(t, link.Client(), core.WithHooks(h.hooks()), core.WithLogger(log.logger()))
	guard := asynqlock.Once(far, asynqlock.ByPayload("order"), asynqlock.FailOpen())
	occupy(t, t.Context(), delivery("1"), receipt("7"), guard)
	link.Refuse(true)
	link.Reset()
	wantDeferred(t, deliver(t.Context(), delivery("2"), receipt("7"), nothing, guard), core.ErrInProgress)
	h.want(t, `core\.Incident .*Kind:unguarded`, 0)
	if text := log.String(); strings.Contains(text, "runs unguarded") {
		t.Errorf("log: %s", text)
	}
	h.want(t, `core\.NotRun .*Reason:busy `, 1)
	link.Heal()
}

// TestLogIsTheClients: guards log through the logger of their client, or of the client of their lock.
func TestLogIsTheClients(t *testing.T) {
	t.Parallel()
	var log diary
	server := testkit.Start(t)
	locks := clientOf(t, server.Client(), core.WithLogger(log.logger()))
	d := &desk{t: t, redis: server, locks: locks}
	server.Kill()
	for name, guard := range d.guardsOf() {
		before := len(log.String())
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), core.ErrUnavailable)
		if got := log.String()[before:]; !regexp.MustCompile("the work was not run.*label=" + kind).MatchString(got) {
			t.Errorf("%s: log %q", name, got)
		}
	}
}
