package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// engine acquires and keeps leases: it is what a [Client] and a [Redlock] have in common, whatever servers their locks live on.
type engine struct {
	clientConfig
	ids          script.IDs
	clientNumber string // of this client, see internal/transport/subscriptions.go
	now          keepalive.Clock
	redis        []redis.UniversalClient // where the locks live

	renewer      *keepalive.Renewer[script.Hold]
	acquiring    acquire.Environment
	acquisitions sync.Pool // of *acquisition

	operations *keepalive.Operations
	closing    context.Context // of functions of users that calls wait for; ends with ErrClosed when Close begins
	beginClose context.CancelCauseFunc
	base       context.Context // of work in the background; ends when Close has waited long enough
	stop       context.CancelFunc
	silence    *time.Timer // runs while the client closes, and calls stop
	closed     sync.Once   // done by Close, so that a second Close waits for all that the first one does

	renewals keepalive.Log
	losses   *keepalive.Losses
	warned   throttle.Seen // what the log says only once

	announcer *inventory.Announcer
	directory *inventory.Directory
}

// newEngine makes an engine whose leases are trusted for their TTL less the drift.
func newEngine(config clientConfig, rdbs []redis.UniversalClient, drift func(ttl time.Duration) time.Duration) *engine {
	e := &engine{
		clientConfig: config,
		ids:          script.IDs{Client: uuid.NewString()},
		clientNumber: transport.NewClientNumber(),
		now:          keepalive.NewClock(),
		redis:        rdbs,
		operations:   keepalive.NewOperations(),
	}
	e.warnOfOwner()
	e.closing, e.beginClose = context.WithCancelCause(context.Background())
	e.base, e.stop = context.WithCancel(context.Background())
	e.silence = time.AfterFunc(acquire.ReleaseTimeout, e.stop)
	e.silence.Stop()
	e.renewer = keepalive.NewRenewer[script.Hold](e.now, drift)
	e.losses = keepalive.NewLosses(e.reportFurther)
	e.announcer = inventory.NewAnnouncer(e.ids.Client, config.instance, e.now, e.cannotAnnounce)
	e.renewer.InUse = e.announcer.Touch
	e.directory = inventory.NewDirectory(e.ids.Client, config.instance, e.now)
	e.acquisitions.New = func() any { return new(acquisition) }
	e.acquiring = acquire.Environment{
		Background: e.work(), IDs: &e.ids, OneServer: len(rdbs) == 1,
		Lists: acquire.NewLists(), Waits: acquire.NewWaits(config.maxWaiters, config.waitWarning), Calls: acquire.NewCalls(),
		NotReleased: e.warnNotReleased, TooManyPending: e.warnPending,
	}
	return e
}

// operate runs a command about one name for a user, unless the client closes. It makes the error one of the API, which says what the
// command does: "inspect lock".
func (e *engine) operate(ctx context.Context, what, name string, k script.Keys, command func() error) error {
	if !e.operations.Start() {
		return ErrClosed
	}
	defer e.operations.Finish()
	if err := command(); err != nil {
		return errorf("holdfast: %s %q: %w", what, name, failure(ctx, k.Lock, err))
	}
	return nil
}

// operateOn is operate for a name that is not checked yet.
func (e *engine) operateOn(ctx context.Context, what, name string, command func(k script.Keys) error) error {
	k, err := keysOf(e.prefix, name)
	if err != nil {
		return err
	}
	return e.operate(ctx, what, name, k, func() error { return command(k) })
}

// background runs work that outlives its caller but not the engine. It reports false if that has come to rest.
func (e *engine) background(work func(ctx context.Context)) bool {
	if !e.operations.StartInternal() {
		return false
	}
	go func() {
		defer e.operations.Finish()
		work(e.base)
	}()
	return true
}

// lost ends a lease that was not unlocked. Its hold may still be in Redis, if the answer to a renewal was late or
// lost, so it is taken out, unless it is left to run out.
func (e *engine) lost(l *Lease, cause error) {
	l.end.Set(cause)
	if !l.leftToExpire(cause) {
		e.acquiring.ReleaseInBackground(l.strategy, l.expiring(), script.HeldByCaller)
	}
	e.report(l, cause)
}

// work is what commands need of this client beyond the call that started them.
func (e *engine) work() transport.Background {
	return transport.Background{Now: e.now, Operations: e.operations, Go: e.background, Recovered: e.recovered, Confirmed: e.confirmed}
}

// confirmed makes Close continue: Redis has confirmed a release or the completion of an attempt. A refusal does not
// count, because a command that Redis refuses is sent again and again, and Close would not end.
func (e *engine) confirmed() {
	if e.operations.IsClosed() {
		e.silence.Reset(acquire.ReleaseTimeout)
	}
}

// maxClosingReleases is how many leases are released at a time when a client closes: enough to fill round trips. More
// would only wait for each other, and a release without a reply for transport.FirstAnswerTimeout is sent again.
const maxClosingReleases = 2 * transport.MaxBatch

// close ends all leases with the cause [ErrClosed] and releases their locks. It must be called once.
func (e *engine) close() error {
	e.operations.BeginClose()
	e.beginClose(ErrClosed)
	// However many leases and pending commands there are, Close continues for as long as Redis confirms them.
	e.silence.Reset(acquire.ReleaseTimeout)
	leases := e.renewer.Close()
	e.warnRunning(leases)
	answered, err := e.releaseAll(leases)
	if answered && err == nil {
		e.announcer.Leave()
	}
	e.operations.Finish()
	<-e.operations.Finished
	e.losses.Close()
	e.silence.Stop()
	e.stop()
	return err
}

// releaseAll ends leases, and takes them out of Redis side by side; the executor makes batches of it. The error
// is the error of the first one that was not released. answered is false if Redis has left a release without a reply.
func (e *engine) releaseAll(leases []keepalive.Lease[script.Hold]) (answered bool, err error) {
	left := make(chan *Lease, len(leases))
	for _, kept := range leases {
		l := kept.(keptLease).Lease
		l.end.Set(ErrClosed)
		left <- l
	}
	close(left)
	var all sync.WaitGroup
	var once sync.Once
	var first error
	var silent atomic.Bool
	for range min(len(leases), maxClosingReleases) {
		all.Go(func() {
			for l := range left {
				e.loses(l, ErrClosed)
				if err := e.releaseLast(l, &silent); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	all.Wait()
	return !silent.Load(), first
}

// errExpiredMeanwhile is the end of a release that has become needless.
var errExpiredMeanwhile = transport.WithOutcome(errors.New("the hold has expired"), transport.Failed)

// releaseLast takes the hold of a lease that has ended out of Redis. If Redis does not reply before the hold expires, it is needless,
// which is no error. silent is set if Redis has not replied; then it also waits for no hold that has expired.
func (e *engine) releaseLast(l *Lease, silent *atomic.Bool) error {
	h, expiry := l.outstanding(), l.expiresAt()
	if silent.Load() && e.now() >= expiry {
		return nil
	}
	bounded, cancel := context.WithTimeout(e.base, max(expiry.Sub(e.now()), transport.FirstAnswerTimeout))
	defer cancel()
	err := transport.RetryUntilAnswered(bounded, func(ctx context.Context) error {
		_, err := l.strategy.Release(ctx, h, script.HeldByCaller)
		if !transport.Transient(err) {
			return err
		}
		silent.Store(true)
		if e.now() >= expiry {
			return errExpiredMeanwhile
		}
		return err
	})
	switch {
	case err == nil:
		silent.Store(false)
		e.confirmed()
		return nil
	case err == errExpiredMeanwhile, err != nil && bounded.Err() != nil && e.base.Err() == nil && e.now() >= expiry:
		return nil
	}
	return errorf("holdfast: close: release of lock %q not confirmed, it expires after its TTL: %w", h.Name,
		failure(context.Background(), h.Keys.Lock, err))
}
