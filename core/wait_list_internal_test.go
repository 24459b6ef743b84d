package core

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestClosingEndsTheLine: whoever waits for a turn does not outlast Close.
func TestClosingEndsTheLine(t *testing.T) {
	t.Parallel()
	q := newWaitLists()
	var first, second localWaiter
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

// TestNextLookIsAfterTheHoldersTime: whoever knows when the lock expires looks right after.
func TestNextLookIsAfterTheHoldersTime(t *testing.T) {
	t.Parallel()
	r := &acquisition{WaitState: lockscript.WaitState{HolderTTL: 50 * time.Millisecond}}
	for _, limit := range []time.Duration{pollUnsubscribed, pollSubscribed} {
		if next := r.nextPoll(limit); next <= r.HolderTTL || next > r.HolderTTL+5*time.Millisecond {
			t.Errorf("looks again after %v, the holder has %v", next, r.HolderTTL)
		}
	}
}

// TestFailureOfReplicasStays: who wants fewer replicas than the first keeps its place, and its turn comes.
func TestFailureOfReplicasStays(t *testing.T) {
	t.Parallel()
	q := newWaitLists()
	var first, weaker, same localWaiter
	q.enter(&first, "k", transport.Ack{Replicas: 2})
	q.enter(&weaker, "k", transport.Ack{Replicas: 1})
	q.enter(&same, "k", transport.Ack{Replicas: 2})
	err := error(&NotReplicatedError{Wanted: 2})
	first.failAll(err)
	first.leave()
	if closing := make(chan struct{}); same.wait(t.Context(), closing) != err || weaker.wait(t.Context(), closing) != nil {
		t.Error("the wrong ones were sent away")
	}
	weaker.failAll(ErrUnavailable)
	if !q.empty("k") {
		t.Error("somebody is left")
	}
}

// TestSharedAnswer: an answer is given to those who came before it was asked for, and ask the same. Of the others, those
// who came in time ask by themselves if the record is settled.
func TestSharedAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer error
		other  error
	}{
		"settled":     {&CompletedError{Record: Record{State: StateCompleted, Value: []byte("value")}}, errAskAlone},
		"not settled": {&OutcomeUnknownError{Record: Record{State: StateAbandoned}}, nil},
	} {
		q := newWaitLists()
		first, same, late := localWaiter{question: 1}, localWaiter{question: 1}, localWaiter{question: 1}
		other := localWaiter{question: 2}
		for _, t := range []*localWaiter{&first, &other, &same} {
			q.enter(t, "k", transport.Ack{})
		}
		first.startAsking()
		q.enter(&late, "k", transport.Ack{})
		first.share(test.answer)
		first.leave()
		never := make(chan struct{})
		if err := same.wait(t.Context(), never); err == nil || err == test.answer || err.Error() != test.answer.Error() {
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
		if late.leave(); !q.empty("k") {
			t.Errorf("%s: a waiter is left", name)
		}
	}
}
