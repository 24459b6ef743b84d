package cli

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// triedLocker takes down with which context it was asked.
type triedLocker struct {
	tried, waited context.Context
}

func (l *triedLocker) TryLock(ctx context.Context, _ ...core.LockOption) (*core.Lease, error) {
	l.tried = ctx
	return nil, core.ErrNotAcquired
}

func (l *triedLocker) Lock(ctx context.Context, _ ...core.LockOption) (*core.Lease, error) {
	l.waited = ctx
	return nil, core.ErrNotAcquired
}

// TestTryIsBounded: a request without waiting ends after tryTimeout, whether or not Redis replies. A wait has no other bound
// than its own.
func TestTryIsBounded(t *testing.T) {
	t.Parallel()
	zero, some := duration(0), duration(time.Hour)
	for name, c := range map[string]execCommand{"-n": {Nonblock: true}, "-w 0": {Wait: &zero}} {
		l := new(triedLocker)
		before := time.Now()
		_, _ = c.lock(t.Context(), l)
		if l.tried == nil {
			t.Errorf("%s waits", name)
			continue
		}
		if until, bounded := l.tried.Deadline(); !bounded || until.Before(before.Add(tryTimeout)) || until.After(time.Now().Add(tryTimeout)) {
			t.Errorf("%s ends at %v, %v", name, until, bounded)
		}
	}
	for name, c := range map[string]execCommand{"no flag": {}, "-w 1h": {Wait: &some}} {
		l := new(triedLocker)
		_, _ = c.lock(t.Context(), l)
		if l.waited == nil {
			t.Errorf("%s does not wait", name)
		} else if _, bounded := l.waited.Deadline(); bounded {
			t.Errorf("%s is bounded", name)
		}
	}
}
