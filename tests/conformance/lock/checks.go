package lockconformance

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// must returns the lease or ends the test.
func (w *world) must(lease *core.Lease, err error) *core.Lease {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("lock: %v", err)
	}
	return lease
}

func (w *world) unlock(lease *core.Lease) {
	w.t.Helper()
	if err := lease.Unlock(context.Background()); err != nil {
		w.t.Errorf("unlock: %v; the lease ended by: %v", err, context.Cause(lease.Context()))
	}
}

// wantErr checks that err is all of targets.
func (w *world) wantErr(err error, targets ...error) {
	w.t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.t.Errorf("error %v is not %v", err, target)
		}
	}
}

// wantNewer checks that the later of two grants of a name has the greater token.
func (w *world) wantNewer(later, earlier *core.Lease) {
	w.t.Helper()
	if later.Token() <= earlier.Token() {
		w.t.Errorf("token %d after %d", later.Token(), earlier.Token())
	}
}

// free checks that nobody holds the lock, by taking it in a new process, from either side: what shares with a hold
// that was left behind would not notice it. Every TTL in this suite is much longer than within, so such a hold
// fails the test.
func (w *world) free(name string) {
	w.t.Helper()
	other := w.process()
	for _, strategy := range []core.Strategy{other.rival, other.lock} {
		testkit.Eventually(w.t, within, "the lock to be free", func() bool {
			lease, err := strategy(name).TryLock(context.Background())
			if err != nil && !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) {
				w.t.Errorf("try lock: %v", err)
			}
			if lease != nil {
				w.unlock(lease)
			}
			return lease != nil
		})
	}
}

// held checks that another process does not get the lock while the strategy under test holds it.
func (w *world) held(name string) {
	w.t.Helper()
	w.wantRefused(w.process().rival(name))
}

// awaitKey returns once a lock is in each place, or in none. What is held back there may be about something else: a release that a
// majority has confirmed is still on its way to the others.
func (w *world) awaitKey(name string, there bool) {
	w.t.Helper()
	for _, rdb := range w.direct() {
		testkit.Eventually(w.t, within, "the request to be executed", func() bool {
			found, err := rdb.Exists(context.Background(), w.key(name)).Result()
			return err == nil && there == (found == 1)
		})
	}
}

// heldByRival is held for when the rival holds the lock.
func (w *world) heldByRival(name string) {
	w.t.Helper()
	w.wantRefused(w.process().lock(name))
}

func (w *world) wantRefused(l *core.Lock) {
	w.t.Helper()
	_, err := l.TryLock(context.Background())
	w.wantErr(err, core.ErrNotAcquired)
}

// wantExpiries looks for keys that would stay forever.
func (w *world) wantExpiries() {
	w.t.Helper()
	ctx := context.Background()
	w.each(func(server *testkit.Server) {
		rdb := server.Client()
		for _, key := range rdb.Keys(ctx, "*"+w.prefix+"*").Val() {
			if ttl := rdb.PTTL(ctx, key).Val(); ttl == -1 {
				w.t.Errorf("key %q has no expiry", key)
			}
		}
	})
}
