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
	var first, second waiter
	q.enter(&first, "k", transport.Ack{})
	q.enter(&second, "k", transport.Ack{})
	closing := make(chan struct{})
	close(closing)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := second.wait(ctx, closing); ctx.Err() != nil {
		t.Errorf("waited until %v", err)
	}
	second.leave()
	first.leave()
}

// TestFailureOfReplicasStays: a waiter that wants fewer replicas than the first one keeps its place, and its turn comes.
func TestFailureOfReplicasStays(t *testing.T) {
	t.Parallel()
	q := NewLists()
	var first, weaker, same waiter
	q.enter(&first, "k", transport.Ack{Replicas: 2})
	q.enter(&weaker, "k", transport.Ack{Replicas: 1})
	q.enter(&same, "k", transport.Ack{Replicas: 2})
	err := errors.New("too few replicas")
	first.failAll(err, true)
	first.leave()
	if closing := make(chan struct{}); same.wait(t.Context(), closing) != err || weaker.wait(t.Context(), closing) != nil {
		t.Error("the wrong ones were sent away")
	}
	weaker.failAll(err, false)
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
		"settled":     {true, errAskAlone},
		"not settled": {false, nil},
	} {
		q := NewLists()
		first, same, late := waiter{Question: 1}, waiter{Question: 1}, waiter{Question: 1}
		other := waiter{Question: 2}
		for _, t := range []*waiter{&first, &other, &same} {
			q.enter(t, "k", transport.Ack{})
		}
		first.startAsking()
		q.enter(&late, "k", transport.Ack{})
		answer := errors.New("refused")
		first.share(answer, test.settled)
		first.leave()
		never := make(chan struct{})
		if err := same.wait(t.Context(), never); err != answer {
			t.Errorf("%s: the same question is answered with %v", name, err)
		}
		if err := other.wait(t.Context(), never); err != test.other {
			t.Errorf("%s: another question is answered with %v", name, err)
		}
		if test.other == nil {
			other.leave()
		}
		if err := late.wait(t.Context(), never); err != nil {
			t.Errorf("%s: one who came later was told %v", name, err)
		}
		if late.leave(); !q.Empty("k") {
			t.Errorf("%s: a waiter is left", name)
		}
	}
}

// TestNextLookIsAfterTheHoldersTime: a waiter that knows when the lock expires asks right aftea.
func TestNextLookIsAfterTheHoldersTime(t *testing.T) {
	t.Parallel()
	a := new(Acquisition)
	a.HolderTTL = 50 * time.Millisecond
	for _, limit := range []time.Duration{unsubscribedPollInterval, 2 * time.Second} {
		if next := a.nextPoll(limit); next <= a.HolderTTL || next > a.HolderTTL+5*time.Millisecond {
			t.Errorf("looks again after %v, the holder has %v", next, a.HolderTTL)
		}
	}
}
