package redlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// node is one of the independent servers of a Redlock.
type node struct {
	lockscript.Mutex
	number int // from 1, as the user counts them
	quorum *Quorum

	verified      atomic.Bool  // it is a server of its own, see verifyIdentity
	failedAt      atomic.Int64 // when it last failed to answer, an instant
	warnedRefusal sync.Once    // requests, which it should not
}

// suspectMemory is how long a server that has not answered is asked last.
const suspectMemory = clock.Instant(time.Second)

var errSlow = errors.New("not answered in the time that one server of several gets")

func newRedlockNode(number int, instance *lockscript.Instance, q *Quorum) *node {
	v := &node{
		Mutex:  lockscript.Mutex{OneRedis: lockscript.OneRedis{Instance: instance}, RestartDelay: q.env.RestartDelay},
		number: number, quorum: q,
	}
	v.failedAt.Store(int64(-suspectMemory))
	v.pendingReleases().UntilClose = true // the other servers are a majority
	return v
}

// verifyIdentity checks that no other client of the Redlock connects to the same server. A node has no vote before that.
// Why: a server that two clients connect to would have two votes. A server that does not allow the check is trusted.
func (v *node) verifyIdentity(ctx context.Context) error {
	if v.verified.Load() {
		return nil
	}
	key := v.quorum.env.Prefix + "redlock"
	runID, err := v.RunID(ctx, key)
	if transport.Classify(err) == transport.Failed {
		v.quorum.env.Logger.Warn("holdfast: the run id of a server of a Redlock is unknown: "+
			"make sure that no other client connects to the same server", "node", v.number, "error", err)
	} else if err != nil {
		return err
	}
	if runID != "" {
		if err := v.quorum.roster.enter(runID, v); err != nil {
			return err
		}
	}
	v.verified.Store(true)
	return nil
}

// ask runs a request of one server, for no longer than each server gets.
func (v *node) ask(ctx context.Context, ttl time.Duration, request func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, v.quorum.nodeTimeout(ttl))
	defer cancel()
	err := v.verifyIdentity(ctx)
	if err == nil {
		err = request(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = errSlow // whichever way the connection puts it: it is not the caller whose time is up
	}
	if transport.Classify(err) == transport.Failed || err != nil && (transport.RefusesUser(err) || transport.UnknownCommand(err)) || isIdentityError(err) {
		v.warnedRefusal.Do(func() {
			v.quorum.env.Logger.Warn("holdfast: a server of a Redlock refuses requests: fewer of the others may fail",
				"node", v.number, "error", err)
		})
	}
	if transport.Transient(err) && !errors.Is(err, errNotCommitted) { // that is an answer: the hold was released before it was settled
		v.failedAt.Store(int64(v.quorum.env.Now()))
	}
	return err
}

// suspect reports whether the server has failed to answer within suspectTime.
func (v *node) suspect() bool {
	return v.quorum.env.Now()-clock.Instant(v.failedAt.Load()) < suspectMemory
}

// commitToken writes the token of a majority to a hold of this server. If regrant is true, it grants the hold anew if the
// server has lost it (read repair).
func (v *node) commitToken(ctx context.Context, h *lockscript.Hold, token int64, regrant bool) error {
	return v.ask(ctx, h.TTL, func(ctx context.Context) error {
		committed, err := v.Commit(ctx, h, token, regrant)
		if err == nil && !committed {
			err = errNotCommitted
		}
		return err
	})
}

// releaseHold releases a hold on the server, now or as soon as the server answers.
func (v *node) releaseHold(ctx context.Context, h *lockscript.Hold, what lockscript.ReleaseReason) (held bool, err error) {
	err = v.ask(ctx, h.TTL, func(ctx context.Context) (err error) {
		held, err = v.Release(ctx, h, what)
		return err
	})
	if err != nil && !isIdentityError(err) { // then nothing was ever granted
		v.releaseLater(*h, what)
	}
	return held, err
}

// pendingReleases returns the releases that the server has not confirmed.
func (v *node) pendingReleases() *transport.Pending { return v.Exec.PendingOf("") }

// releaseLater sends a release until the server has confirmed it, or the hold has expired on the server.
func (v *node) releaseLater(h lockscript.Hold, what lockscript.ReleaseReason) {
	v.pendingReleases().Add(&transport.PendingCommand{
		ID: h.ID,
		Send: func(ctx context.Context) error {
			return v.ask(ctx, h.TTL, func(ctx context.Context) error {
				_, err := v.Release(ctx, &h, what)
				return err
			})
		},
		Until: v.quorum.env.Now().Add(max(h.TTL, h.MinHold)),
	})
}
