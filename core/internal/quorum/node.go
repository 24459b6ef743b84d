package quorum

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// node is one of the independent servers of a Redlock: the Mutex of that server, with a vote. It is safe for concurrent use.
type node struct {
	script.Mutex
	number int // from 1, as the user counts them
	quorum *Strategy

	// verified is true once the node may vote, see verifyIdentity. It never becomes false again, although the server gets
	// another run ID when it restarts.
	verified      atomic.Bool
	failedAt      atomic.Int64 // a keepalive.Instant: when the server last failed to answer
	warnedRefusal sync.Once    // the log has one line for a server that refuses requests, however many it refuses
}

// suspectMemory is how long a server that has not answered is suspect. It is short because a server that is back has to count
// again.
const suspectMemory = keepalive.Instant(time.Second)

// errSlow is the error of a request that took longer than nodeTimeout. Its outcome is unknown, so a lost round releases the
// hold on that server. Not the error of the context, because it would look as if the time of the caller were up.
var errSlow = errors.New("not answered in the time that one server of several gets")

// newRedlockNode returns a node that is not verified yet, and not suspect.
func newRedlockNode(number int, instance *script.Instance, q *Strategy) *node {
	v := &node{
		Mutex:  script.Mutex{Instance: instance, RestartDelay: q.env.RestartDelay},
		number: number, quorum: q,
	}
	v.failedAt.Store(int64(-suspectMemory)) // not 0: a clock may begin there
	v.pendingReleases().UntilClose = true   // Close does not wait for a server that is down: the others are a majority
	return v
}

// verifyIdentity checks that no other node of the Redlock is the same server. It returns nil if the node may vote, and an
// identityError if another node has the same server. If the server did not answer, it returns the error of the request.
// After an error the caller must send nothing else. The next request checks again.
//
// A server that refuses to return its run ID is trusted, because the check must not need rights that the lock does not need.
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
		if err := v.quorum.enter(runID, v); err != nil {
			return err
		}
	}
	v.verified.Store(true)
	return nil
}

// ask runs a request of the server v for at most nodeTimeout, and records what the answer says of the server. All requests
// but renewals come this way. So an unverified node has no vote in a round. If ctx comes from transport.WithoutEnd, the
// server is asked even if the caller has left.
//
// It warns, once, of a server that will refuse the next request too, because the Redlock works without that server, so the user
// would otherwise learn of it only when others fail. A server that did not answer becomes suspect. One that answers that a hold
// is not there (errNotCommitted) does not.
func ask[R any](ctx context.Context, v *node, ttl time.Duration, request func(ctx context.Context) (R, error)) (answer R, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.quorum.nodeTimeout(ttl))
	defer cancel()
	err = v.verifyIdentity(ctx)
	if err == nil {
		answer, err = request(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = errSlow // whatever the connection returns: the server's time is up, not the caller's
	}
	if err != nil && refusesRequests(err) {
		v.warnedRefusal.Do(func() {
			v.quorum.env.Logger.Warn("holdfast: a server of a Redlock refuses requests: fewer of the others may fail",
				"node", v.number, "error", err)
		})
	}
	if transport.Transient(err) && !errors.Is(err, errNotCommitted) {
		v.failedAt.Store(int64(v.quorum.env.Now()))
	}
	return answer, err
}

// refusesRequests returns true if the server will refuse the next request too. err must not be nil.
func refusesRequests(err error) bool {
	return transport.Classify(err) == transport.Failed || transport.RefusesUser(err) || transport.UnknownCommand(err) ||
		errors.Is(err, transport.ErrMisconfigured) || transport.OutOfMemory(err) || isIdentityError(err)
}

// suspect returns true if the server has failed to answer within the last suspectMemory.
func (v *node) suspect() bool {
	return v.quorum.env.Now()-keepalive.Instant(v.failedAt.Load()) < suspectMemory
}

// commitToken writes the token of a majority to a hold of this server. It returns errNotCommitted if the server does not
// have the hold. If regrant is true, a server that has lost the hold is granted it anew (read repair). That does not apply
// if another owner has the lock there, or if the hold was released.
//
// In a round regrant must be false, because a hold that ended between vote and commit would come back, although another client
// may have had the lock on this server meanwhile.
func (v *node) commitToken(ctx context.Context, h *script.Hold, token int64, regrant bool) error {
	_, err := ask(ctx, v, h.TTL, func(ctx context.Context) (bool, error) {
		committed, err := v.Commit(ctx, h, token, regrant)
		if err == nil && !committed {
			err = errNotCommitted
		}
		return committed, err
	})
	return err
}

// releaseHold releases a hold on the server. It returns true if the server had the hold. If it returns an error, the release
// is pending, and a goroutine in the background sends it again. So the caller need not repeat it.
//
// It writes to h, so each goroutine must pass a hold of its own.
func (v *node) releaseHold(ctx context.Context, h *script.Hold, what script.ReleaseReason) (held bool, err error) {
	held, err = ask(ctx, v, h.TTL, func(ctx context.Context) (bool, error) { return v.Release(ctx, h, what) })
	if err != nil && !isIdentityError(err) { // a node that is refused its vote was never asked for the hold
		v.releaseLater(*h, what)
	}
	return held, err
}

// pendingReleases returns the releases that the server has not confirmed, of all holds.
func (v *node) pendingReleases() *transport.Pending { return v.Exec.PendingOf("") }

// releaseLater adds a pending release. It is sent until the server has confirmed it, or until the hold has expired there.
//
// A hold that no caller got may begin late: a frozen server reads the request only once it runs again. If a majority was
// frozen, that would be a lock without a holder. So its release is sent for script.AbandonMemory longer. Any other hold was
// granted by a majority, and a late copy of it is on a minority. Not the same time, because while a server is down, each
// release adds to its pending ones.
//
// A hold whose release is pending gets no second one, by its ID, because the caller of Release repeats it while too few servers
// answer, and each try would add one.
func (v *node) releaseLater(h script.Hold, what script.ReleaseReason) {
	lasts := max(h.TTL, h.MinHold)
	if what == script.NeverHeld {
		lasts += script.AbandonMemory
	}
	taken := v.pendingReleases().Add(&transport.PendingCommand{
		ID: h.ID,
		Send: func(ctx context.Context) error {
			_, err := ask(ctx, v, h.TTL, func(ctx context.Context) (bool, error) { return v.Release(ctx, &h, what) })
			return err
		},
		Until: v.quorum.env.Now().Add(lasts),
	})
	if !taken && !v.quorum.env.Operations.IsClosed() {
		v.quorum.env.TooManyPending()
	}
}
