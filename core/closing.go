package core

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// maxClosingReleases is how many leases are released at a time when a client closes: enough to fill round trips. More
// would only wait for each other, and a release without an answer for transport.FirstAnswer is sent again.
const maxClosingReleases = 2 * transport.MaxBatch

// close ends all leases with the cause [ErrClosed] and releases their locks. It reports false if that was done before.
func (k *keeper) close() (first bool, err error) {
	if !k.operations.BeginClose() {
		<-k.operations.Finished
		return false, nil
	}
	// However many leases there are, they are released for as long as Redis goes on answering.
	silence := time.AfterFunc(releaseTimeout, k.stop)
	err = k.releaseAll(k.renewer.Close(), func() { silence.Reset(releaseTimeout) })
	k.operations.Finish()
	<-k.operations.Finished
	silence.Stop()
	k.stop()
	return true, err
}

// releaseAll ends leases, and takes them out of Redis side by side; the executor makes batches of it. It calls released
// after each that was. The error is that of the first that was not.
func (k *keeper) releaseAll(leases []keepalive.Lease[lockscript.Hold], released func()) error {
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
	for range min(len(leases), maxClosingReleases) {
		all.Go(func() {
			for l := range left {
				if err := k.releaseLast(l); err != nil {
					once.Do(func() { first = err })
				} else {
					released()
				}
			}
		})
	}
	all.Wait()
	return first
}

// releaseLast takes the hold of a lease that has ended out of Redis.
func (k *keeper) releaseLast(l *Lease) error {
	h := l.outstanding()
	err := transport.RetryUntilAnswered(k.base, func(ctx context.Context) error {
		_, err := l.protocol.Release(ctx, h, lockscript.HeldByCaller)
		return err
	})
	if err != nil {
		return errorf("holdfast: close: release of lock %q not confirmed, it expires after its TTL: %w", h.Name,
			failure(context.Background(), h.Keys.Lock, err))
	}
	return nil
}
