package guardconformance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// proven returns a function that commits its payload with a proof.
func proven(p *coretest.Proof) Func {
	return func(ctx context.Context, payload string) (string, error) {
		value, err := p.InTx(ctx, payload)
		return string(value), err
	}
}

// loses deletes all records.
func (s *stage) loses() {
	s.t.Helper()
	if err := s.server.Client().FlushAll(s.t.Context()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func testProofFound(t *testing.T, s *stage) {
	p := coretest.NewProof()
	deliver := s.with(proven(p), core.WithProof(p), core.WithFailurePolicy(core.HoldFailures))
	s.send(deliver, Ran)
	s.loses()
	s.send(deliver, append(again, Ran)...) // some places have no other word for success
	if end := s.wantRuns(2); end.State != core.StateCompleted || end.Err != nil || p.Rows() != 1 {
		t.Errorf("%+v, %d rows", end, p.Rows())
	}
	s.send(deliver, again...)
	s.wantRuns(2)
}

func testProofAfterCrash(t *testing.T, s *stage) {
	p := coretest.NewProof()
	second, ran := s.crash(func(ctx context.Context) {
		if _, err := p.InTx(ctx, "payload"); err != nil {
			t.Error(err)
		}
	}, core.WithProof(p), core.WithFailurePolicy(core.HoldFailures))
	s.sendUntil(second, again...)
	if ran.Load() != 0 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testProofAway(t *testing.T, s *stage) {
	p, down := coretest.NewProof(), errors.New("connection refused")
	deliver := s.with(failing(func(ctx context.Context) error { return core.Hold(ctx, "ask the bank") }), core.WithProof(p))
	s.send(deliver, Ran, Unknown)
	p.GoAway(down)
	s.send(deliver, Undecided)
	s.send(deliver, Undecided)
	if not := s.wantNots(2); !errors.Is(not.Err, core.ErrUndecided) || !strings.EqualFold(not.Reason, "undecided") {
		t.Errorf("%+v", not)
	}
	if s.lines("the proof could not be asked") == 0 || s.lines("Redis") > 0 {
		t.Errorf("the log has %s", s.log)
	}
	p.GoAway(nil)
	s.send(deliver, Unknown)
}

func testProofMismatch(t *testing.T, s *stage) {
	p := coretest.NewProof()
	deliver := s.with(proven(p), core.WithProof(p), core.WithFailurePolicy(core.HoldFailures))
	s.send(deliver, Ran)
	s.loses()
	for range 2 { // the second one is refused before it runs, by the proof or again by its transaction
		s.want(deliver(t.Context(), "key", "another payload"), Mismatch)
	}
	s.send(deliver, append(again, Ran)...)
	s.send(deliver, again...)
	s.want(deliver(t.Context(), "key", "another payload"), Mismatch)
	if p.Rows() != 1 {
		t.Errorf("%d rows", p.Rows())
	}
}

func testProofThenFailure(t *testing.T, s *stage) {
	p := coretest.NewProof()
	deliver := s.with(func(ctx context.Context, payload string) (string, error) {
		_, err := p.InTx(ctx, payload)
		return "", errors.Join(err, errEffect)
	}, core.WithProof(p))
	deliver(t.Context(), "key", "payload")
	if n := s.lines("failed after it had committed"); n != 1 {
		t.Errorf("%d lines, the log has %s", n, s.log)
	}
	s.send(deliver, again...)
}
