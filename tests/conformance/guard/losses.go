package guardconformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// shortTTL is the TTL of leases whose expiry a test waits for.
var shortTTL = core.WithTTL(time.Second)

func testLost(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	first := s.begin(s.with(fn, shortTTL))
	ctx := await(t, began, "the run")
	s.away()
	awaitEnd(t, ctx, "its lease was lost")
	if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) || ctx.Err() == nil {
		t.Errorf("cause %v", cause)
	}
	s.relay.Heal()
	end <- context.Cause(ctx)
	s.end(first, Failed, Unavailable, Busy)
	if i := s.wantIncident(core.IncidentLost); !errors.Is(i.Err, core.ErrLeaseLost) {
		t.Errorf("%+v", i)
	}
	s.wantRuns(1)
}

func testLate(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	first := s.begin(s.with(fn, shortTTL))
	ctx := await(t, began, "the first run")
	s.away()
	awaitEnd(t, ctx, "its lease was lost")
	second := s.other(func(context.Context, string) (string, error) { return "of the second", nil }, shortTTL)
	s.sendUntil(second, Ran)
	s.relay.Heal()
	end <- nil
	s.result(first) // the place decides what a late success is worth
	s.wantIncident(core.IncidentLost)
	s.wantRuns(1)
	if got := s.send(second, again...); got.Code == Replayed && got.Value != "of the second" {
		t.Errorf("value %q", got.Value)
	}
}

// crash runs fn in a process that is cut off right after it, and returns a second process.
func (s *stage) crash(fn func(ctx context.Context), opts ...guard.Option) (second Deliver, ran *atomic.Int64) {
	crashed := make(chan struct{})
	opts = append(opts, shortTTL)
	first := s.begin(s.with(func(ctx context.Context, payload string) (string, error) {
		fn(ctx)
		s.away()
		close(crashed)
		<-s.t.Context().Done()
		return payload, nil
	}, opts...))
	s.t.Cleanup(func() { s.result(first) })
	await(s.t, crashed, "the crash")
	ran = new(atomic.Int64)
	return s.other(counted(ran), opts...), ran
}

func testCrashRetried(t *testing.T, s *stage) {
	second, ran := s.crash(func(context.Context) {})
	s.send(second, Busy)
	s.sendUntil(second, Ran)
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testCrashHeld(t *testing.T, s *stage) {
	second, ran := s.crash(func(context.Context) {}, core.WithFailurePolicy(core.HoldFailures))
	s.sendUntil(second, Unknown)
	if ran.Load() != 0 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testCrashCompleted(t *testing.T, s *stage) {
	second, ran := s.crash(func(ctx context.Context) {
		if err := core.Complete(ctx); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, patience, "the end of the lease", func() bool { return s.send(second, append(again, Busy)...).Code != Busy })
	if ran.Load() != 0 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testLeaves(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	deliver := s.with(fn)
	first := s.begin(deliver)
	ctx := await(t, began, "the run")
	first.cancel()
	awaitEnd(t, ctx, "its item had ended")
	s.end(first, Left, Failed, Broken)
	s.send(s.other(fn), Busy)
	end <- nil
	s.wantRuns(1)
	if s.kind == Once {
		s.send(s.other(fn), again...)
		return
	}
	end <- nil
	s.send(s.other(fn), Ran)
}

func testOverrun(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	first := s.begin(s.with(fn, guard.WithZombieGrace(50*time.Millisecond), shortTTL))
	await(t, began, "the run")
	first.cancel()
	s.wantIncident(core.IncidentOverrun)
	var ran atomic.Int64
	s.sendUntil(s.other(counted(&ran), shortTTL), Ran)
	end <- errEffect
	s.wantRuns(1)
}

// lossModes are how a reply may be lost. A relay that is silent takes as long as the client's read timeout.
var lossModes = map[string]testkit.LossMode{"Closed": testkit.Closed, "Silent": testkit.Silent}

func testLostBegin(t *testing.T, s *stage) {
	for name, mode := range lossModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, s.place, s.kind)
			var first sync.Once
			s.onBegin = func(name string) { first.Do(func() { s.relay.LoseReplies("lock:"+name, 1, mode) }) }
			var ran atomic.Int64
			deliver := s.with(counted(&ran), core.WithWait(patience/2))
			s.send(deliver, Ran)
			if ran.Load() != 1 || s.relay.LostReplies() != 1 {
				t.Errorf("ran %d times, %d replies lost", ran.Load(), s.relay.LostReplies())
			}
			s.wantRuns(1)
		})
	}
}

func testLostEnd(t *testing.T, s *stage) {
	for name, mode := range lossModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, s.place, s.kind)
			deliver := s.with(func(_ context.Context, payload string) (string, error) {
				s.relay.LoseReplies("lock:"+s.name(), 1, mode)
				return payload, nil
			})
			s.send(deliver, Ran)
			if s.relay.LostReplies() != 1 {
				t.Errorf("%d replies lost", s.relay.LostReplies())
			}
			end := s.wantRuns(1)
			other := s.other(func(_ context.Context, payload string) (string, error) { return payload, nil })
			if s.kind == Once {
				if end.State != core.StateCompleted {
					t.Errorf("%+v", end)
				}
				s.send(other, again...)
				return
			}
			s.sendUntil(other, Ran)
		})
	}
}

func testLostDeclare(t *testing.T, s *stage) {
	for name, mode := range lossModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, s.place, s.kind)
			deliver := s.with(failing(func(ctx context.Context) error {
				s.relay.LoseReplies("lock:"+s.name(), 1, mode)
				if err := core.Complete(ctx); err != nil {
					t.Error(err)
				}
				return errEffect
			}))
			s.send(deliver, Failed, Ran, Completed) // a place that has nothing to say says that it has taken effect
			s.send(deliver, again...)
			s.wantRuns(1)
		})
	}
}

// impatient are options for an outage that a test waits out.
var impatient = []guard.Option{guard.WithAskTimeout(3 * time.Second), guard.WithFinishTimeout(300 * time.Millisecond)}

func (s *stage) impatient(more ...guard.Option) []guard.Option { return append(more, impatient...) }

func testOutageBefore(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran), impatient...)
	s.away()
	s.send(deliver, Unavailable)
	if not := s.wantNots(1); !errors.Is(not.Err, core.ErrUnavailable) || ran.Load() != 0 {
		t.Errorf("%+v", not)
	}
	s.relay.Heal()
	s.sendUntil(deliver, Ran)
}

func testOpenBefore(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(func(ctx context.Context, payload string) (string, error) {
		ran.Add(1)
		if token, ok := core.TokenFrom(ctx); ok || !guard.Degraded(ctx) {
			t.Errorf("token %d, degraded %v", token, guard.Degraded(ctx))
		}
		return payload, nil
	}, s.impatient(guard.FailOpen())...)
	s.away()
	s.send(deliver, Ran)
	if i := s.wantIncident(core.IncidentUnguarded); !errors.Is(i.Err, core.ErrUnavailable) {
		t.Errorf("%+v", i)
	}
	if end := s.wantRuns(1); end.Token != 0 || end.Attempt != 0 {
		t.Errorf("%+v", end)
	}
	if s.kind == Exclusive {
		s.send(deliver, Ran)
		return
	}
	s.send(deliver, again...) // this process knows
	s.relay.Heal()
	other := s.other(counted(&ran))
	testkit.Eventually(t, patience, "the record", func() bool {
		records, err := s.peek(other)
		return err == nil && records == core.StateCompleted
	})
	s.send(other, again...)
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

// peek returns the state of the record that the client of the stage has asked for.
func (s *stage) peek(Deliver) (core.State, error) {
	r, err := s.locks.Once(s.name()).Peek(s.t.Context())
	return r.State, err
}

func testOpenHeld(t *testing.T, s *stage) {
	deliver := s.with(failing(func(ctx context.Context) error {
		if err := core.Hold(ctx, "ask the bank"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		return nil
	}), s.impatient(guard.FailOpen())...)
	s.away()
	s.send(deliver, Ran, Unknown)
	s.send(deliver, Unknown)
	s.relay.Heal()
	testkit.Eventually(t, patience, "the record", func() bool {
		state, err := s.peek(deliver)
		return err == nil && state == core.StateUnknown
	})
	s.send(deliver, Unknown)
}

func testOutageDuring(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	first := s.begin(s.with(fn, impatient...))
	await(t, began, "the run")
	s.away()
	end <- nil
	s.end(first, Ran)
	s.wantIncident(core.IncidentUnrecorded)
	s.wantRuns(1)
	s.relay.Heal()
	end <- nil
	other := s.other(fn)
	if s.kind == Exclusive {
		s.sendUntil(other, Ran)
		return
	}
	testkit.Eventually(t, patience, "the record", func() bool { return s.send(other, append(again, Busy)...).Code != Busy })
}

func testOpenDuring(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	deliver := s.with(fn, s.impatient(guard.FailOpen())...)
	first := s.begin(deliver)
	await(t, began, "the run")
	s.away()
	s.send(deliver, Busy) // this process knows
	end <- nil
	s.end(first, Ran)
	if s.kind == Once {
		s.send(deliver, again...)
	}
	s.wantRuns(1)
}

func testOpenAfter(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran), s.impatient(guard.FailOpen())...)
	s.send(deliver, Ran)
	s.away()
	s.send(deliver, again...)
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testOpenBusy(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	first := s.begin(s.other(fn))
	await(t, began, "the run of another process")
	var ran atomic.Int64
	deliver := s.with(counted(&ran), s.impatient(guard.FailOpen())...)
	s.send(deliver, Busy)
	s.away()
	s.send(deliver, Busy)
	if ran.Load() != 0 {
		t.Errorf("ran %d times", ran.Load())
	}
	end <- nil
	s.end(first, Ran)
}

func testLoggedOnce(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran), impatient...)
	s.away()
	for range 3 {
		s.send(deliver, Unavailable)
	}
	if n := s.lines("was not run"); n != 1 || strings.Contains(s.log.String(), "payload") {
		t.Errorf("%d lines:\n%s", n, s.log)
	}
}
