package core

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// voter is one of the servers of a Redlock.
type voter struct {
	mutex
	number int // from 1, as the user counts them
	quorum *quorum

	known   atomic.Bool  // it is a server of its own
	trouble atomic.Int64 // when it last failed to answer, an instant
	refuses sync.Once    // requests, which it should not
}

// shunned is how long a server that has failed to answer is asked last.
const shunned = instant(time.Second)

var errSlow = errors.New("not answered in the time that one server of several gets")

func newVoter(number int, s *server, q *quorum) *voter {
	v := &voter{
		mutex:  mutex{oneRedis: oneRedis{s}, restartDelay: q.keeper.restartDelay},
		number: number, quorum: q,
	}
	v.trouble.Store(int64(-shunned))
	v.unconfirmed().untilClose = true // the other servers are a majority
	return v
}

// introduce finds out whether this is a server of its own; before that it has no vote, because one server that is
// reached by two clients would have two. A server that may not say who it is, is trusted.
func (v *voter) introduce(ctx context.Context) error {
	if v.known.Load() {
		return nil
	}
	key := v.quorum.keeper.prefix + "redlock"
	reply, err := v.server.exec.do(ctx, identityScript, []string{key})
	if classify(err) == failed {
		v.quorum.keeper.logger.Warn("holdfast: the run id of a server of a Redlock is unknown: "+
			"make sure that no other client connects to the same server", "node", v.number, "error", err)
	} else if err != nil {
		return err
	}
	if runID, _ := reply.(string); strings.TrimSpace(runID) != "" {
		if err := v.quorum.roster.enter(runID, v); err != nil {
			return err
		}
	}
	v.known.Store(true)
	return nil
}

// ask runs a request of one server, for no longer than each server gets.
func (v *voter) ask(ctx context.Context, ttl time.Duration, request func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, v.quorum.patience(ttl))
	defer cancel()
	err := v.introduce(ctx)
	if err == nil {
		err = request(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = errSlow // whichever way the connection puts it: it is not the caller whose time is up
	}
	if classify(err) == failed || err != nil && (refusesUser(err) || unknownCommand(err)) || errors.Is(err, ErrInvalidOption) {
		v.quorum.keeper.warnOnce(&v.refuses, "a server of a Redlock refuses requests: fewer of the others may fail",
			"node", v.number, "error", err)
	}
	if transient(err) && !errors.Is(err, errTaken) { // that is an answer: the hold was released before it was settled
		v.trouble.Store(int64(v.quorum.keeper.now()))
	}
	return err
}

// troubled reports whether the server has failed to answer just now.
func (v *voter) troubled() bool {
	return v.quorum.keeper.now()-instant(v.trouble.Load()) < shunned
}

// settle gives a hold the token that the servers have agreed on; if restore is set, also where it was forgotten.
func (v *voter) settle(ctx context.Context, h *hold, token int64, restore bool) error {
	grant := 0
	if restore {
		grant = 1
	}
	return v.ask(ctx, h.ttl, func(ctx context.Context) error {
		reply, err := v.server.exec.do(ctx, settleScript,
			[]string{h.keys.lock, h.keys.token, h.released},
			h.owner, h.id, milliseconds(h.ttl), token, milliseconds(tokenMemory), milliseconds(h.minHold), grant)
		if err == nil && reply != int64(1) {
			err = errTaken
		}
		return err
	})
}

// letGo takes a hold out of the server, now or as soon as it answers.
func (v *voter) letGo(ctx context.Context, h *hold, what releaseReason) (held bool, err error) {
	err = v.ask(ctx, h.ttl, func(ctx context.Context) (err error) {
		held, err = v.release(ctx, h, what)
		return err
	})
	if err != nil && !errors.Is(err, ErrInvalidOption) { // then nothing was ever granted
		v.letGoLater(*h, what)
	}
	return held, err
}

// unconfirmed are the releases that the server has missed.
func (v *voter) unconfirmed() *pending { return v.server.exec.nodes.only.pending }

// letGoLater sends a release until the server has confirmed it, or the hold's TTL is over: the server has forgotten it by
// then.
func (v *voter) letGoLater(h hold, what releaseReason) {
	v.unconfirmed().add(&pendingCommand{
		id: h.id,
		send: func(ctx context.Context) error {
			return v.ask(ctx, h.ttl, func(ctx context.Context) error {
				_, err := v.release(ctx, &h, what)
				return err
			})
		},
		until: v.quorum.keeper.now().add(max(h.ttl, h.minHold)),
	})
}
