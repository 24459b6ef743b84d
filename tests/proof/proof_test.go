package proof_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const key = "payment:42"

// proofKey is the key of the proof: with the prefix of the client.
const proofKey = "lock:" + key

func start(t *testing.T, opts ...core.Option) (*redis.Client, *core.Client, *coretest.Proof) {
	t.Helper()
	rdb := testkit.Start(t).Client()
	return rdb, coretest.NewClient(t, rdb, opts...), coretest.NewProof()
}

// crash begins an attempt whose process ends.
func crash(t *testing.T, rdb *redis.Client, o *core.Once) {
	t.Helper()
	coretest.MustBegin(t, o).Abandon()
	coretest.Abandon(t, rdb, o.Key())
}

// TestFirstAttemptSkipsTheProof: a first attempt does not query the proof.
func TestFirstAttemptSkipsTheProof(t *testing.T) {
	t.Parallel()
	_, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	for i := range 2 {
		r, err := o.Do(t.Context(), pays(s, "paid"))
		if err != nil || string(r.Value) != "paid" || r.Replayed != (i == 1) {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n := s.Asked(); n != 0 {
		t.Errorf("the proof was asked %d times", n)
	}
}

// TestCommittedBeforeCrash: a process ends between its commit and its record. The next attempt returns what was committed.
func TestCommittedBeforeCrash(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	crash(t, rdb, o)
	s.Commit(proofKey, "paid", "")
	for range 2 {
		r, err := o.Do(t.Context(), never(t))
		if err != nil || string(r.Value) != "paid" || !r.Replayed || r.Attempt != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	coretest.WantState(t, o, core.StateCompleted, 2)
	if n := s.Asked(); n != 1 {
		t.Errorf("the proof was asked %d times", n)
	}
}

// TestNotCommittedBeforeCrash: the next attempt runs.
func TestNotCommittedBeforeCrash(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	crash(t, rdb, o)
	r, err := o.Do(t.Context(), pays(s, "paid"))
	if err != nil || r.Replayed || r.Attempt != 2 || s.Asked() != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUndecided: while the proof cannot be asked nothing runs, and nothing is used up.
func TestUndecided(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	crash(t, rdb, o)
	down := errors.New("connection refused")
	s.GoAway(down)
	for range 3 {
		_, err := o.Do(t.Context(), never(t))
		for _, want := range []error{core.ErrUndecided, core.ErrUnavailable, down} {
			coretest.WantErr(t, err, want)
		}
	}
	if _, err := o.Begin(t.Context()); err == nil || strings.Contains(err.Error(), "Redis") {
		t.Errorf("error %v", err)
	}
	coretest.WantState(t, o, core.StateNone, 1)
	s.GoAway(nil)
	if r, err := o.Do(t.Context(), pays(s, "paid")); err != nil || r.Attempt != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestResolved: a key that an operator has resolved does not run again, also if Redis loses the record, and an attempt that continues
// late does not commit.
func TestResolved(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s), core.WithFailurePolicy(core.HoldFailures), core.WithFingerprint([]byte("7")))
	resolve := func() error {
		t.Helper()
		seen, err := o.Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o.Resolve(t.Context(), seen, []byte("by hand"))
	}
	late := coretest.MustBegin(t, o)
	coretest.WantErr(t, resolve(), core.ErrInProgress)
	if s.Rows() != 0 {
		t.Error("the proof has what was not resolved")
	}
	late.Abandon()
	coretest.Abandon(t, rdb, o.Key())
	s.GoAway(errors.New("away"))
	coretest.WantErr(t, resolve(), core.ErrUndecided)
	s.GoAway(nil)
	coretest.WantState(t, o, core.StateUnknown, 1)
	if err := resolve(); err != nil {
		t.Fatal(err)
	}
	coretest.WantErr(t, resolve(), core.ErrCompleted)
	if _, err := s.InTx(late.Context(), "paid"); !errors.Is(err, core.ErrCompleted) {
		t.Errorf("the late attempt has committed: %v", err)
	}
	for range 2 {
		r, err := o.Do(t.Context(), pays(s, "paid"))
		if err != nil || string(r.Value) != "by hand" || !r.Replayed {
			t.Errorf("%+v, %v", r, err)
		}
		rdb.FlushAll(t.Context())
	}
	other := locks.Once(key, core.WithProof(s), core.WithFingerprint([]byte("8")))
	_, err := other.Do(t.Context(), pays(s, "paid"))
	coretest.WantErr(t, err, core.ErrFingerprintMismatch)
	seen, _ := o.Peek(t.Context())
	coretest.WantErr(t, o.Forget(t.Context(), seen), core.ErrCompleted)
}

// TestResolvedAfterCommit: a run has committed, so there is nothing for an operator to decide.
func TestResolvedAfterCommit(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s), core.WithFailurePolicy(core.HoldFailures))
	crash(t, rdb, o)
	s.Commit(proofKey, "paid", "")
	seen, _ := o.Peek(t.Context())
	err := o.Resolve(t.Context(), seen, []byte("by hand"))
	var done *core.CompletedError
	if !errors.As(err, &done) || string(done.Record.Value) != "paid" {
		t.Errorf("%v", err)
	}
	if r, err := o.Do(t.Context(), never(t)); err != nil || string(r.Value) != "paid" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUnknownOutcome: of HoldFailures, what is committed is completed, and the rest is held.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		for name, end := range map[string]func(t *testing.T, rdb *redis.Client, o *core.Once){
			"crash": crash,
			"error": func(t *testing.T, _ *redis.Client, o *core.Once) {
				_, _ = o.Do(t.Context(), func(context.Context) ([]byte, error) { return nil, errors.New("failed") })
			},
			"hold": func(t *testing.T, _ *redis.Client, o *core.Once) {
				_, _ = o.Do(t.Context(), func(ctx context.Context) ([]byte, error) { return nil, core.Hold(ctx, "look") })
			},
		} {
			rdb, locks, s := start(t)
			o := locks.Once(key, core.WithProof(s), core.WithFailurePolicy(core.HoldFailures))
			end(t, rdb, o)
			if committed {
				s.Commit(proofKey, "paid", "")
			}
			for range 2 {
				r, err := o.Do(t.Context(), never(t))
				if committed && (err != nil || string(r.Value) != "paid" || !r.Replayed) ||
					!committed && !errors.Is(err, core.ErrOutcomeUnknown) {
					t.Errorf("%s, committed %v: %+v, %v", name, committed, r, err)
				}
			}
			if committed {
				coretest.WantState(t, o, core.StateCompleted, 1)
			} else {
				coretest.WantState(t, o, core.StateUnknown, 1)
				s.GoAway(errors.New("away"))
				_, err := o.Do(t.Context(), never(t))
				coretest.WantErr(t, err, core.ErrUndecided)
			}
		}
	}
}

// TestOnlyEffect: if the transaction is the whole effect, an attempt without a proof has done nothing. What was held by Hold waits
// for an operator all the same.
func TestOnlyEffect(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	s.Only = true
	o := locks.Once(key, core.WithProof(s), core.WithFailurePolicy(core.HoldFailures))
	crash(t, rdb, o)
	if _, err := o.Do(t.Context(), func(context.Context) ([]byte, error) { return nil, errors.New("failed") }); errors.Is(err, core.ErrOutcomeUnknown) {
		t.Errorf("after a crash: %v", err)
	}
	_, _ = o.Do(t.Context(), func(ctx context.Context) ([]byte, error) { return nil, core.Hold(ctx, "look") })
	_, err := o.Do(t.Context(), never(t))
	coretest.WantErr(t, err, core.ErrOutcomeUnknown)
	coretest.WantState(t, o, core.StateUnknown, 3)
}

// TestRedisLosesTheRecord: an attempt that looks like the first one finds the effect in its transaction, and the record is
// completed before its function continues.
func TestRedisLosesTheRecord(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	if _, err := o.Do(t.Context(), pays(s, "paid")); err != nil {
		t.Fatal(err)
	}
	rdb.FlushAll(t.Context())
	r, err := o.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		value, err := s.InTx(ctx, "paid twice")
		var done *core.CompletedError
		if !errors.As(err, &done) || string(done.Record.Value) != "paid" || string(value) != "paid" {
			t.Errorf("%q, %v", value, err)
		}
		coretest.WantState(t, o, core.StateCompleted, 1)
		return nil, err
	})
	if err != nil || string(r.Value) != "paid" || !r.Replayed {
		t.Errorf("%+v, %v", r, err)
	}
	rdb.FlushAll(t.Context())
	r, err = o.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		value, _ := s.InTx(ctx, "paid twice")
		return append(value, " before"...), nil // its own answer
	})
	if err != nil || string(r.Value) != "paid before" || !r.Replayed {
		t.Errorf("%+v, %v", r, err)
	}
	if got := coretest.WantState(t, o, core.StateCompleted, 1); string(got.Value) != "paid" {
		t.Errorf("record %+v", got)
	}
}

// TestFailureAfterCommit: what comes after the commit does not make the key run again.
func TestFailureAfterCommit(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(context.Context) error{
		"error":   func(context.Context) error { return errors.New("the mail was not sent") },
		"panic":   func(context.Context) error { panic("the mail was not sent") },
		"release": core.Release,
		"hold":    func(ctx context.Context) error { return core.Hold(ctx, "look") },
	} {
		_, locks, s := start(t)
		o := locks.Once(key, core.WithProof(s), core.WithFailurePolicy(core.HoldFailures))
		func() {
			defer func() { _ = recover() }()
			_, _ = o.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
				value, err := s.InTx(ctx, "paid")
				if err != nil {
					t.Error(err)
				}
				return value, after(ctx)
			})
		}()
		if name == "hold" {
			coretest.WantState(t, o, core.StateUnknown, 1)
		} else {
			coretest.WantState(t, o, core.StateCompleted, 1)
		}
		r, err := o.Do(t.Context(), never(t))
		if err != nil || string(r.Value) != "paid" || !r.Replayed {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestForgetOfProven: the key would not run again, so the operator is told.
func TestForgetOfProven(t *testing.T) {
	t.Parallel()
	_, locks, s := start(t)
	o := locks.Once(key, core.WithProof(s))
	if _, err := o.Do(t.Context(), pays(s, "paid")); err != nil {
		t.Fatal(err)
	}
	seen := coretest.MustPeek(t, o)
	for _, forget := range []func(context.Context, core.Record) error{o.Forget, o.ForgetRunning} {
		err := forget(t.Context(), seen)
		coretest.WantErr(t, err, core.ErrCompleted)
		if err == nil || !strings.Contains(err.Error(), "delete its proof") {
			t.Errorf("error %v", err)
		}
		s.GoAway(errors.New("away"))
		coretest.WantErr(t, forget(t.Context(), seen), core.ErrUndecided)
		s.GoAway(nil)
	}
	coretest.WantState(t, o, core.StateCompleted, 1)
	s.Delete(proofKey)
	if err := o.Forget(t.Context(), seen); err != nil {
		t.Error(err)
	}
}

// TestProofOfAnotherRequest: the same key with another fingerprint gets no value, and leaves proof and record to the first request.
func TestProofOfAnotherRequest(t *testing.T) {
	t.Parallel()
	rdb, locks, s := start(t)
	tea := locks.Once(key, core.WithProof(s), core.WithFingerprint([]byte("tea")))
	coffee := locks.Once(key, core.WithProof(s), core.WithFingerprint([]byte("coffee")))
	if _, err := tea.Do(t.Context(), pays(s, "paid")); err != nil {
		t.Fatal(err)
	}
	rdb.FlushAll(t.Context())
	for range 2 {
		_, err := coffee.Do(t.Context(), pays(s, "coffee"))
		coretest.WantErr(t, err, core.ErrFingerprintMismatch)
	}
	if r, err := tea.Do(t.Context(), pays(s, "twice")); err != nil || string(r.Value) != "paid" || !r.Replayed {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := coffee.Do(t.Context(), never(t))
	coretest.WantErr(t, err, core.ErrFingerprintMismatch)
}

// TestHooksOfProof: each question is told, and the leases add up.
func TestHooksOfProof(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []core.ProofAsked
	var leases atomic.Int64
	rdb, locks, s := start(t, core.WithHooks(core.Hooks{
		ProofAsked: func(_ context.Context, a core.ProofAsked) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, a)
		},
		BeginEnd: func(_ context.Context, end core.BeginEnd) {
			if end.Err == nil {
				leases.Add(1)
			}
		},
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) {
			if !end.LeaseLost {
				leases.Add(-1)
			}
		},
		Lost: func(context.Context, core.Lost) { leases.Add(-1) },
	}))
	o := locks.Once(key, core.WithProof(s))
	crash(t, rdb, o)
	s.GoAway(errors.New("away"))
	_, _ = o.Do(t.Context(), never(t))
	s.GoAway(nil)
	_, _ = o.Do(t.Context(), func(context.Context) ([]byte, error) { return nil, errors.New("failed") })
	s.Commit(proofKey, "paid", "")
	_, _ = o.Do(t.Context(), never(t))
	rdb.FlushAll(t.Context())
	_, _ = o.Do(t.Context(), pays(s, "twice"))
	if n := leases.Load(); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	mu.Lock()
	defer mu.Unlock()
	got := slices.Collect(func(yield func(string) bool) {
		for _, a := range asked {
			what := "absent"
			switch {
			case a.Key != key:
				t.Errorf("%+v", a)
			case a.Err != nil:
				what = "undecided"
			case a.Committed:
				what = "committed"
			}
			if !yield(what) {
				return
			}
		}
	})
	if want := []string{"undecided", "absent", "committed", "committed"}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

// TestSuccessWithoutTransaction: the log tells it once.
func TestSuccessWithoutTransaction(t *testing.T) {
	t.Parallel()
	var log coretest.Record
	_, locks, s := start(t, core.WithLogger(coretest.TextLogger(&log)))
	for _, k := range []string{"a", "b"} {
		if _, err := locks.Once(k, core.WithProof(s)).Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "without its transaction"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

// TestNilProof: it is refused by name.
func TestNilProof(t *testing.T) {
	t.Parallel()
	_, locks, _ := start(t)
	for _, p := range []core.Proof{nil, (*coretest.Proof)(nil)} {
		coretest.WantInvalid(t, locks.Once(key, core.WithProof(p)).Forget(t.Context(), core.Record{}), core.ErrInvalidOption, "WithProof")
	}
}

// TestProofPanics: the attempt is taken back.
func TestProofPanics(t *testing.T) {
	t.Parallel()
	rdb, locks, _ := start(t)
	o := locks.Once(key, core.WithProof(panicking{}))
	crash(t, rdb, o)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = o.Begin(t.Context())
	}()
	testkit.Eventually(t, coretest.Within, "the attempt to be taken back", func() bool {
		return coretest.MustPeek(t, o).State == core.StateNone
	})
}

type panicking struct{}

func (panicking) Committed(context.Context, string) (*core.Committed, error) { panic("no") }
func (panicking) Resolve(context.Context, string, core.Committed) error      { panic("no") }
func (panicking) OnlyEffect() bool                                           { return false }

// TestProvingOutside: only a run of a Once with a proof has one.
func TestProvingOutside(t *testing.T) {
	t.Parallel()
	_, locks, _ := start(t)
	_, err := locks.Once(key).Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		if p := seal.RunFrom(ctx).Proving(); p != nil {
			t.Errorf("%+v", p)
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}
