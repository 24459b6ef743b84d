package guard_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// desk is a Once and what its hooks were told.
type desk struct {
	*guard.Once
	server *locktest.Server
	locks  *core.Client
	log    *testkit.Log

	mu        sync.Mutex
	nots      []core.NotRun
	ends      []core.RunEnd
	incidents chan core.Incident
}

func newDesk(t *testing.T, c guard.Config) *desk {
	t.Helper()
	c.AskTimeout = cmp.Or(c.AskTimeout, time.Minute) // Redis replies, however slow the machine
	d := &desk{server: locktest.Start(t), log: new(testkit.Log), incidents: make(chan core.Incident, 100)}
	d.locks = d.server.NewClient(core.WithLogger(slog.New(slog.NewTextHandler(d.log, nil))), core.WithHooks(core.Hooks{
		RunEnd: func(_ context.Context, e core.RunEnd) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ends = append(d.ends, e)
		},
		NotRun: func(_ context.Context, n core.NotRun) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.nots = append(d.nots, n)
		},
		Incident: func(_ context.Context, i core.Incident) { d.incidents <- i },
	}))
	once, err := guard.NewOnce("desk", d.locks, c)
	if err != nil {
		t.Fatal(err)
	}
	d.Once = once
	return d
}

var ask = guard.Ask{Name: "desk:key", Work: core.Work{KeyHash: "hash", Label: "label"}}

// call runs a function that succeeds.
func call(fn func(ctx context.Context)) guard.Run { return guard.Run{Call: fn} }

func nothing(context.Context) {}

func (d *desk) record(t *testing.T) core.Record {
	t.Helper()
	r, err := d.Of(ask).Peek(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d *desk) incident(t *testing.T, kind core.IncidentKind) error {
	t.Helper()
	select {
	case i := <-d.incidents:
		if i.Kind != kind || i.Place != "desk" {
			t.Errorf("%+v, want %s", i, kind)
		}
		return i.Err
	case <-time.After(20 * time.Second):
		t.Fatalf("no incident %s", kind)
		return nil
	}
}

func TestConstructors(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	for name, err := range map[string]error{
		"nil client":       second(guard.NewOnce("desk", nil, guard.Config{})),
		"zero client":      second(guard.NewOnce("desk", new(core.Client), guard.Config{})),
		"retention":        second(guard.NewOnce("desk", locks, guard.Config{Once: []core.OnceOption{core.WithRetention(-1)}})),
		"nil strategy":     second(guard.NewExclusive("desk", nil, guard.Config{})),
		"option of a lock": second(guard.NewExclusive("desk", locks.Mutex, guard.Config{Lock: []core.LockOption{core.WithTTL(-1)}})),
	} {
		if !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestTurn: a place decides when Redis is asked, and why not.
func TestTurn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{Wait: time.Hour})
	notYet := errors.New("others come first")
	a := ask
	a.Turn = func(ctx context.Context, ask func(context.Context, time.Duration) error) error {
		if err := ask(ctx, 0); err != nil {
			t.Error(err)
		}
		return notYet // although it was granted
	}
	refused := func(_ context.Context, not *core.NotRun) { not.Reason, not.RetryAfter = "turn", time.Minute }
	if o, err := d.Do(t.Context(), a, guard.Run{Call: nothing, Refuse: refused}); o != nil || !errors.Is(err, notYet) {
		t.Errorf("%+v, %v", o, err)
	}
	if len(d.nots) != 1 || d.nots[0].Reason != "turn" || d.nots[0].RetryAfter != time.Minute {
		t.Errorf("%+v", d.nots)
	}
	a.Turn = func(ctx context.Context, ask func(context.Context, time.Duration) error) error { return ask(ctx, 0) }
	if o, err := d.Do(t.Context(), a, call(nothing)); err != nil || o.Attempt != 1 || o.State != core.StateCompleted {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestTurnWhileAnotherRunsWithoutRedis: an item is granted while an outage lets another one run in this process.
func TestTurnWhileAnotherRunsWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, exclusive := range []bool{false, true} {
		d := newDesk(t, guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond, FinishTimeout: 100 * time.Millisecond})
		do := d.Do
		if exclusive {
			e, err := guard.NewExclusive("desk", d.locks.Mutex, guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			do = e.Do
		}
		began, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		a := ask
		a.Turn = func(ctx context.Context, request func(context.Context, time.Duration) error) error {
			if err := request(ctx, 0); err != nil {
				t.Error(err)
			}
			d.server.Stop()
			go func() {
				defer close(ended)
				if o, err := do(t.Context(), ask, call(func(context.Context) { close(began); <-end })); err != nil || o.Unguarded == nil {
					t.Errorf("%+v, %v", o, err)
				}
			}()
			<-began
			d.server.Start()
			return nil
		}
		_, err := do(t.Context(), a, call(func(context.Context) { t.Error("it runs beside the other one") }))
		if !guard.Busy(err) {
			t.Errorf("error %v", err)
		}
		close(end)
		<-ended
	}
}

// TestGrantedTooLate: the item's context ends when its turn has come.
func TestGrantedTooLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the client has left")
	a := ask
	a.Turn = func(ctx context.Context, ask func(context.Context, time.Duration) error) error {
		defer cancel(left)
		return ask(ctx, 0)
	}
	if _, err := d.Do(ctx, a, call(func(context.Context) { t.Error("it runs") })); !errors.Is(err, left) {
		t.Errorf("error %v", err)
	}
	if r := d.record(t); r.State != core.StateNone || len(d.ends) > 0 || len(d.nots) != 1 {
		t.Errorf("%+v, %+v, %+v", r, d.ends, d.nots)
	}
}

// TestAround: what an item needs beside its grant comes before its run, and ends after its record.
func TestAround(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	overlap := errors.New("an earlier run is in progress")
	refuse := func(set func(o *guard.Outcome)) guard.Run {
		return guard.Run{Call: nothing, Around: func(_ context.Context, o *guard.Outcome, _ func(context.Context)) error {
			set(o)
			return overlap
		}}
	}
	if _, err := d.Do(t.Context(), ask, refuse(func(*guard.Outcome) {})); !errors.Is(err, overlap) {
		t.Errorf("error %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = d.Do(t.Context(), ask, refuse(func(*guard.Outcome) { panic("in Around") }))
	}()
	var token int64
	o, err := d.Do(t.Context(), ask, guard.Run{
		Call: func(ctx context.Context) { token, _ = core.TokenFrom(ctx) },
		Around: func(ctx context.Context, o *guard.Outcome, next func(context.Context)) error {
			if o.Attempt != 1 { // the two before were withdrawn
				t.Errorf("%+v", o)
			}
			return d.locks.Mutex("inner").Do(ctx, func(ctx context.Context) error {
				next(ctx)
				if len(d.ends) != 1 {
					t.Error("left before the end of the run")
				}
				return overlap // after the run, which has its own outcome
			})
		},
		Judge: func(o *guard.Outcome) { o.Verdict = guard.Released },
	})
	if err != nil || o.Token != token || token == 0 || o.State != core.StateNone {
		t.Errorf("token %d, %+v, %v", token, o, err)
	}
	skipped := refuse(func(o *guard.Outcome) {
		o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { return []byte("skipped"), nil }
	})
	if _, err := d.Do(t.Context(), ask, skipped); !errors.Is(err, overlap) {
		t.Errorf("error %v", err)
	}
	if r := d.record(t); string(r.Value) != "skipped" {
		t.Errorf("%+v", r)
	}
}

// TestDetached: the run continues when its item ends, but not when its lease does. Err tells of that even if a context of the
// place's does not pass it on.
func TestDetached(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	a := ask
	a.Detached = guard.FromAnyContext
	o, err := d.Do(ctx, a, guard.Run{
		Around: func(ctx context.Context, _ *guard.Outcome, next func(context.Context)) error {
			next(foreign{ctx})
			return nil
		},
		Call: func(ctx context.Context) {
			cancel()
			if ctx.Err() != nil || guard.Degraded(ctx) {
				t.Error(ctx.Err())
			}
			guard.Abandon(ctx)
			if ctx.Err() == nil {
				t.Error("Err does not tell of the loss")
			}
		},
		Judge: func(o *guard.Outcome) { o.Verdict = guard.Completed },
	})
	if err != nil || !errors.Is(o.Lost, core.ErrLeaseLost) || o.Unrecorded != nil || o.State != core.StateCompleted {
		t.Errorf("%+v, %v", o, err)
	}
	if err := d.incident(t, core.IncidentLost); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("error %v", err)
	}
}

// foreign is a context that passes on no end.
type foreign struct{ context.Context }

func (foreign) Err() error { return nil }

// TestBy: near the time of the answer an item waits no longer, and its end takes half of the time that is left.
func TestBy(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{Wait: time.Hour, FinishTimeout: time.Hour})
	holder, err := d.Of(ask).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := ask
	a.By = time.Now().Add(2 * time.Second)
	if _, err := d.Do(t.Context(), a, call(nothing)); !errors.Is(err, core.ErrInProgress) {
		t.Errorf("error %v", err)
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.By = time.Now().Add(2 * time.Second)
	late := time.AfterFunc(time.Minute, d.server.Resume) // an end that takes all of FinishTimeout is recorded then
	o, err := d.Do(t.Context(), a, call(func(context.Context) { d.server.Pause() }))
	late.Stop()
	d.server.Resume()
	if err != nil || !errors.Is(o.Unrecorded, core.ErrUnavailable) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestNested: a guard lets an item pass that is in a run of its key. That the inner one holds failures counts for both.
func TestNested(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	inner, err := guard.NewOnce("inner", d.locks, guard.Config{FailurePolicy: core.HoldFailures})
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	pass := func(ctx context.Context) {
		passed++
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
	}
	_, err = d.Do(t.Context(), ask, guard.Run{
		Call: func(ctx context.Context) {
			for range 2 {
				if o, err := inner.Do(ctx, ask, guard.Run{Pass: pass}); err != nil || o.State != core.StateNone {
					t.Errorf("%+v, %v", o, err)
				}
			}
			if _, err := d.Do(ctx, guard.Ask{Name: "desk:other"}, call(pass)); err != nil {
				t.Error(err)
			}
		},
		Judge: func(o *guard.Outcome) { o.Err = errors.New("it failed") },
	})
	if r := d.record(t); err != nil || passed != 3 || r.State != core.StateUnknown || r.Reason != "the function failed" {
		t.Errorf("%v, passed %d times, %+v", err, passed, r)
	}
	if len(d.ends) != 2 {
		t.Errorf("%+v", d.ends)
	}
}

// TestNestedAfterTheOuter: a context that outlives its run lets nothing pass. What the function has said outweighs the policy of
// a guard inside.
func TestNestedAfterTheOuter(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	inner, err := guard.NewOnce("inner", d.locks, guard.Config{FailurePolicy: core.HoldFailures})
	if err != nil {
		t.Fatal(err)
	}
	var kept context.Context
	o, err := d.Do(t.Context(), ask, call(func(ctx context.Context) {
		kept = context.WithoutCancel(ctx)
		if err := core.Complete(ctx); err != nil {
			t.Error(err)
		}
		_, _ = inner.Do(ctx, ask, call(nothing))
	}))
	if err != nil || o.State != core.StateCompleted {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := d.Do(kept, ask, call(nothing)); !errors.Is(err, core.ErrCompleted) {
		t.Errorf("error %v", err)
	}
}

// TestNestedWithoutRedis: the same while Redis is unreachable, and for locks. A run inside one without Redis is degraded too.
func TestNestedWithoutRedis(t *testing.T) {
	t.Parallel()
	c := guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond, FinishTimeout: 100 * time.Millisecond}
	d := newDesk(t, c)
	c.FailOpen, c.FailurePolicy = false, core.HoldFailures
	inner, err := guard.NewOnce("inner", d.locks, c)
	if err != nil {
		t.Fatal(err)
	}
	exclusive, err := guard.NewExclusive("lock", d.locks.Mutex, guard.Config{FailOpen: true, AskTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	d.server.Stop()
	passed := false
	_, err = d.Do(t.Context(), ask, call(func(ctx context.Context) {
		run := seal.RunFrom(ctx)
		if d, _ := run.Word().Said(); d != seal.Undecided || run.Attempt() != nil {
			t.Error("said")
		}
		_, _ = inner.Do(ctx, ask, call(func(ctx context.Context) {
			a := guard.Ask{Name: "lock:key"}
			_, err := exclusive.Do(ctx, a, call(func(ctx context.Context) {
				guard.Abandon(ctx) // there is nothing to abandon
				_, err := exclusive.Do(ctx, a, call(func(ctx context.Context) { passed = guard.Degraded(ctx) }))
				if known := exclusive.Known(t.Context(), a, core.ErrUnavailable); err != nil || !errors.Is(known, core.ErrNotAcquired) {
					t.Error(err)
				}
				if known := exclusive.Known(ctx, a, core.ErrUnavailable); known != nil {
					t.Errorf("its own run is in the way: %v", known)
				}
			}))
			if err != nil {
				t.Error(err)
			}
		}))
	}))
	if err != nil || !passed {
		t.Errorf("passed %v, %v", passed, err)
	}
	if had, err := d.Forget(t.Context(), core.Record{Key: ask.Name}); !had || err != nil { // an operator has decided
		t.Errorf("the run is not remembered: %v", err)
	}
	d.server.Start()
}

// TestForgetWhileRecordedLate: an operator forgets a run without Redis at the moment in which its guard is recording it. If that
// succeeds, the run stays forgotten.
func TestForgetWhileRecordedLate(t *testing.T) {
	t.Parallel()
	var once *guard.Once
	var first sync.Once
	within := make(chan error, 1) // of Forget between Begin and Complete of the late record
	server := locktest.Start(t)
	locks := server.NewClient(core.WithHooks(core.Hooks{BeginEnd: func(ctx context.Context, end core.BeginEnd) {
		if end.Err == nil {
			first.Do(func() {
				_, err := once.Forget(ctx, core.Record{Key: ask.Name})
				within <- err
			})
		}
	}}))
	once, err := guard.NewOnce("desk", locks, guard.Config{FailOpen: true, AskTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if o, err := once.Do(t.Context(), ask, call(nothing)); err != nil || o.Unguarded == nil {
		t.Fatalf("%+v, %v", o, err)
	}
	server.Start()
	if err := <-within; !errors.Is(err, core.ErrInProgress) {
		t.Errorf("error %v while the run is being recorded", err)
	}
	testkit.Eventually(t, 20*time.Second, "the run to be forgotten", func() bool {
		seen, err := once.Peek(t.Context(), ask.Name)
		return err == nil && once.ForgetSeen(t.Context(), "desk:", seen) == nil
	})
	if o, err := once.Do(t.Context(), ask, call(nothing)); err != nil || o.Unguarded != nil {
		t.Errorf("a forgotten run is in the way: %+v, %v", o, err)
	}
}

// TestJudgePanics: what was judged until then counts, and a run whose value cannot be made is recorded without it.
func TestJudgePanics(t *testing.T) {
	t.Parallel()
	broken := errors.New("no key for the cipher")
	for name, judge := range map[string]func(*guard.Outcome){
		"judge": func(o *guard.Outcome) {
			o.Verdict = guard.Completed
			panic("in Judge")
		},
		"value": func(o *guard.Outcome) {
			o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { panic("in Value") }
		},
		"value error": func(o *guard.Outcome) {
			o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { return nil, secret{broken} }
		},
	} {
		d := newDesk(t, guard.Config{})
		func() {
			defer func() {
				if p := recover(); (p == nil) != (name == "value error") {
					t.Errorf("%s: %v", name, p)
				}
			}()
			if o, _ := d.Do(t.Context(), ask, guard.Run{Call: nothing, Judge: judge}); !errors.Is(o.Unrecorded, broken) {
				t.Errorf("%+v", o)
			}
			if err := d.incident(t, core.IncidentUnrecorded); !errors.Is(err, broken) || strings.Contains(d.log.String(), "cipher") ||
				!strings.Contains(d.log.String(), "recorded without its result") {
				t.Errorf("%v:\n%s", err, d.log)
			}
		}()
		if r := d.record(t); r.State != core.StateCompleted || len(r.Value) > 0 || len(d.ends) != 1 {
			t.Errorf("%s: %+v, %+v", name, r, d.ends)
		}
	}
}

// secret is an error whose text is not for the log.
type secret struct{ error }

func (s secret) Unwrap() error      { return s.error }
func (secret) LogValue() slog.Value { return slog.StringValue("a failure that is told elsewhere") }

// TestOwnEnd: a function may end its attempt itself.
func TestOwnEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	o, err := d.Do(t.Context(), ask, call(func(ctx context.Context) {
		attempt, _ := core.AttemptFrom(ctx)
		if err := attempt.Complete(ctx, []byte("own")); err != nil {
			t.Error(err)
		}
	}))
	if err != nil || o.Lost != nil || o.Unrecorded != nil || string(d.record(t).Value) != "own" || len(d.incidents) > 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestOverrunEndsTheAttempt: a place may record what it knows of an overrun. A panic there ends no process.
func TestOverrunEndsTheAttempt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{ZombieGrace: time.Millisecond})
	ctx, cancel := context.WithCancelCause(t.Context())
	o, err := d.Do(ctx, ask, guard.Run{
		Call: func(context.Context) {
			cancel(errors.New("too slow"))
			if err := d.incident(t, core.IncidentOverrun); err == nil || err.Error() != "too slow" {
				t.Errorf("error %v", err)
			}
			testkit.Eventually(t, 20*time.Second, "the line", func() bool { return strings.Contains(d.log.String(), "in Overrun") })
		},
		Overrun: func(ctx context.Context) {
			attempt, _ := core.AttemptFrom(ctx)
			if err := attempt.Complete(ctx, []byte("timed out")); err != nil {
				t.Error(err)
			}
			panic("in Overrun")
		},
	})
	if err != nil || o.Unrecorded != nil || string(d.record(t).Value) != "timed out" {
		t.Errorf("%+v, %v, %+v", o, err, d.record(t))
	}
}

// TestRecordOfAnAsk: what an item has of its own is in its record, and in what the guard remembers.
func TestRecordOfAnAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{FailOpen: true, AskTimeout: 2 * time.Second})
	a := ask
	a.Note, a.Retention, a.Fingerprint = "note", time.Hour, []byte("0123456789abcdef")
	if _, err := d.Do(t.Context(), a, call(nothing)); err != nil {
		t.Error(err)
	}
	if r := d.record(t); r.Note != "note" || r.Retention > time.Hour || string(r.Fingerprint) != "0123456789abcdef" {
		t.Errorf("%+v", r)
	}
	d.server.Stop()
	if err := d.Known(t.Context(), a, core.ErrUnavailable); !errors.Is(err, core.ErrCompleted) {
		t.Errorf("error %v", err)
	}
	err := errors.New("not that one")
	replay := func(context.Context, core.Record) error { return err }
	if o, got := d.Do(t.Context(), a, guard.Run{Call: nothing, Replay: replay}); o != nil || !errors.Is(got, err) {
		t.Errorf("%+v, %v", o, got)
	}
	d.server.Start()
}

// TestTooManyKeys: the hooks are told when there is room.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{Once: []core.OnceOption{core.WithQuota(1)}})
	for i, name := range []string{"desk:{user}:1", "desk:{user}:2"} {
		if _, err := d.Do(t.Context(), guard.Ask{Name: name}, call(nothing)); errors.Is(err, core.ErrTooManyKeys) != (i == 1) {
			t.Errorf("error %v", err)
		}
	}
	if len(d.nots) != 1 || d.nots[0].RetryAfter <= 0 {
		t.Errorf("%+v", d.nots)
	}
}

// TestLog: the first event of a kind is logged at once, then one a minute with the number of them.
func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out testkit.Log
		log := guard.Log{Logger: slog.New(slog.NewTextHandler(&out, nil))}
		w := core.Work{Label: "a\nb", Due: time.Now()}
		log.Event(t.Context(), slog.LevelDebug, "kind", "too fine", w, nil)
		for range 3 {
			log.Event(t.Context(), slog.LevelWarn, "kind", "text", w, nil, slog.String("more", "than that"))
			log.Line(t.Context(), slog.LevelWarn, "each", w)
		}
		time.Sleep(2 * time.Minute)
		log.Event(t.Context(), slog.LevelWarn, "kind", "text", w, errors.New("reason"))
		got := out.String()
		if strings.Count(got, "msg=text") != 2 || strings.Count(got, `more="than that"`) != 1 || strings.Count(got, "msg=each") != 3 || !strings.Contains(got, "seen=3 within=2m0s") || !strings.Contains(got, "error=reason") ||
			!strings.Contains(got, `label=a\nb`) || !strings.Contains(got, "due=") || strings.Contains(got, "too fine") {
			t.Errorf("log:\n%s", got)
		}
	})
}

// TestRefusalsOfRedis: an answer of Redis has a kind of its own in the log. A kind of incident of a place's is its own to log.
func TestRefusalsOfRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var out testkit.Log
	locks, err := core.New(server.Client(), core.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	c := guard.Config{FailOpen: true, AskTimeout: time.Minute} // Redis answers, however slow the machine
	once, err := guard.NewOnce("desk", locks, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := once.Do(t.Context(), guard.Ask{Name: "first"}, call(nothing)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := once.Do(t.Context(), ask, call(func(context.Context) { t.Error("a full Redis opens the guard") }))
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("error %v", err)
		}
	}
	once.Incident(t.Context(), core.Incident{Work: ask.Work, Kind: "line"})
	if n := strings.Count(out.String(), "the work was not run"); n != 1 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	bare := guard.HooksOf(seal.Facts{})
	bare.RunEnd(t.Context(), core.RunEnd{})
	bare.NotRun(t.Context(), core.NotRun{})
	bare.Incident(t.Context(), core.Incident{})
	if ctx := t.Context(); bare.RunStart(ctx, core.RunStart{}) != ctx {
		t.Error("another context")
	}
}

// TestStale: an end that comes after the end of a later run does not count, and reports so.
func TestStale(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guard.Config{})
	other, err := guard.NewOnce("desk", d.server.NewClient(core.WithLogger(nil)), guard.Config{AskTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.Do(t.Context(), ask, call(func(ctx context.Context) {
		guard.Abandon(ctx)
		d.server.Advance(time.Minute)
		if o, err := other.Do(t.Context(), ask, call(nothing)); err != nil || o.Attempt != 2 {
			t.Errorf("%+v, %v", o, err)
		}
	}))
	if err != nil || !errors.Is(o.Unrecorded, core.ErrStale) || !errors.Is(o.Lost, core.ErrStale) || !errors.Is(o.Lost, core.ErrLeaseLost) {
		t.Errorf("%+v, %v", o, err)
	}
	_ = d.incident(t, core.IncidentLost)
	if len(d.incidents) > 0 {
		t.Error("a later run counts: that is not unrecorded")
	}
}
