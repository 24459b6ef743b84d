package acquire

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestClosingEndsTheLine: no waiter outlasts Close.
func TestClosingEndsTheLine(t *testing.T) {
	t.Parallel()
	q := NewLists()
	var first, second Waiter
	q.Enter(&first, "k", transport.Ack{})
	q.Enter(&second, "k", transport.Ack{})
	closing := make(chan struct{})
	close(closing)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := second.Wait(ctx, closing); ctx.Err() != nil {
		t.Errorf("waited until %v", err)
	}
	second.Leave()
	first.Leave()
}

// TestFailureOfReplicasStays: a waiter that wants fewer replicas than the first one keeps its place, and its turn comes.
func TestFailureOfReplicasStays(t *testing.T) {
	t.Parallel()
	q := NewLists()
	var first, weaker, same Waiter
	q.Enter(&first, "k", transport.Ack{Replicas: 2})
	q.Enter(&weaker, "k", transport.Ack{Replicas: 1})
	q.Enter(&same, "k", transport.Ack{Replicas: 2})
	err := errors.New("too few replicas")
	first.FailAll(err, true)
	first.Leave()
	if closing := make(chan struct{}); same.Wait(t.Context(), closing) != err || weaker.Wait(t.Context(), closing) != nil {
		t.Error("the wrong ones were sent away")
	}
	weaker.FailAll(err, false)
	if !q.Empty("k") {
		t.Error("somebody is left")
	}
}

// TestSharedAnswer: an answer is given to the waiters that came before it was asked for, and ask the same. Of the others,
// those that came in time ask by themselves if the record is settled.
func TestSharedAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settled bool
		other   error
	}{
		"settled":     {true, ErrAskAlone},
		"not settled": {false, nil},
	} {
		q := NewLists()
		first, same, late := Waiter{Question: 1}, Waiter{Question: 1}, Waiter{Question: 1}
		other := Waiter{Question: 2}
		for _, t := range []*Waiter{&first, &other, &same} {
			q.Enter(t, "k", transport.Ack{})
		}
		first.StartAsking()
		q.Enter(&late, "k", transport.Ack{})
		answer := errors.New("refused")
		first.Share(answer, test.settled)
		first.Leave()
		never := make(chan struct{})
		if err := same.Wait(t.Context(), never); err != answer {
			t.Errorf("%s: the same question is answered with %v", name, err)
		}
		if err := other.Wait(t.Context(), never); err != test.other {
			t.Errorf("%s: another question is answered with %v", name, err)
		}
		if test.other == nil {
			other.Leave()
		}
		if err := late.Wait(t.Context(), never); err != nil {
			t.Errorf("%s: one who came later was told %v", name, err)
		}
		if late.Leave(); !q.Empty("k") {
			t.Errorf("%s: a waiter is left", name)
		}
	}
}
