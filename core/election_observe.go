package core

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// Leader is the leader of an election, or a vacancy.
type Leader struct {
	// Owner is the leader as Redis knows it. It is "" of a vacancy, which only [Election.Observe] returns.
	Owner string
	// Value is what the leader proclaims, see [WithValue].
	Value string
	// Term is the fencing token of the leader, greater than those of all leaders before. Of a vacancy, it is the term
	// of the last leader that this Observe has seen, or 0.
	Term int64
	// Since is when the leader was elected, by the server's clock, to within 10 ms.
	Since time.Time
	// TTL is the time after which the lead ends if it is not renewed.
	TTL time.Duration
}

func newLeader(l script.Leader) Leader {
	return Leader{Owner: l.Owner, Value: l.Value, Term: l.Token, Since: l.Granted, TTL: l.TTL}
}

// Leader reads the present leader, which may be outdated when it arrives. It returns [ErrNoLeader] if no process leads.
// Right after its election, a leader may be returned without its value. Any process may ask, without a candidate.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if err := e.lock.check(); err != nil {
		return Leader{}, err
	}
	var found script.Leader
	err := e.lock.engine.operate(ctx, "leader of election", e.lock.name, e.lock.keys, func() (err error) {
		found, err = e.read(ctx)
		return err
	})
	switch {
	case err != nil:
		return Leader{}, err
	case found.Owner == "":
		return Leader{}, errorf("%w: election %q", ErrNoLeader, e.lock.name)
	}
	return newLeader(found), nil
}

func (e *Election) read(ctx context.Context) (script.Leader, error) {
	return e.redis.Leader(ctx, e.lock.keys)
}

// Observe returns the present leader, and each change of the leader or its value, vacancies included. Terms
// never go back, even if a replica or a master that was replaced answers. A loop that is slow gets only the newest state.
// Any process may observe, without a candidate.
//
// Changes arrive by a message, or with the next poll: after the TTL of the leader, and after two to three seconds at most.
// While Redis does not answer, nothing is returned: the leader may have changed, or have ended after its [Leader.TTL].
//
// The loop ends when ctx ends or the client closes. It ends at once for a wrong name or option, which [Election.Leader]
// reports.
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		if e.lock.check() != nil {
			return
		}
		c := e.lock.engine
		if !c.operations.Start() {
			return
		}
		news := e.redis.SubscribeToLeader(e.lock.keys)
		c.operations.Finish()
		defer news.Close()
		observer := acquire.Observer{
			Read: e.read, Operations: c.operations, Notifications: news.Notifications(),
			Failed: func(err error) {
				c.logger.Warn("holdfast: leader not known, asking again until Redis answers",
					"lock", digest(e.lock.keys.Lock), "error", err)
			},
		}
		observer.Run(ctx, func(l script.Leader) bool { return yield(newLeader(l)) })
	}
}
