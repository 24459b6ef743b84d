package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	kept            = 20_000          // leases, records and marks whose memory is measured
	markTTL         = 5 * time.Second // a release of a lease with such a TTL leaves a mark
	markSeconds     = 6               // for as long, see docs/keys-and-rights.md
	onceMarkSeconds = 15              // for as long a release of a Once leaves one
)

// memoryCosts measures what is in the server while names are held, and after that.
func memoryCosts(ctx context.Context, s *site) (m Memory, err error) {
	m.Held = make(map[string]float64)
	for _, of := range strategies() {
		logf("memory: %d leases of %s", kept, of.name)
		if m.Held[of.name], err = s.added(ctx, func(c *core.Client, name string) (end func() error, err error) {
			lease, err := of.of(c, name).Lock(ctx)
			return func() error { return lease.Unlock(ctx) }, err
		}, 0); err != nil {
			return m, err
		}
	}
	logf("memory: %d records and marks", kept)
	if m.Record, err = s.added(ctx, func(c *core.Client, name string) (func() error, error) {
		return nothing, beginAndComplete(ctx, c, name, 0)
	}, marksGone); err != nil {
		return m, err
	}
	m.Mark, err = s.added(ctx, func(c *core.Client, name string) (func() error, error) {
		lease, err := c.Mutex(name, core.WithTTL(markTTL)).Lock(ctx)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		return nothing, lease.Unlock(ctx)
	}, 0)
	return m, err
}

func nothing() error { return nil }

// marksGone is after how long the server has removed the marks that ends of a Once have left. It removes expired keys some at
// a time.
const marksGone = (onceMarkSeconds + 10) * time.Second

// added returns the bytes that each of many calls of begin has added to the server some time later, until end is called.
func (s *site) added(
	ctx context.Context, begin func(c *core.Client, name string) (end func() error, err error), later time.Duration,
) (bytes float64, err error) {
	f, err := s.fleet(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if err := s.flush(ctx); err != nil {
		return 0, err
	}
	ends := make([]func() error, kept)
	each := func(do func(i int) error) error { return spread(kept, do) }
	taken, err := s.watch(ctx, func() (map[string]float64, error) {
		defer time.Sleep(later)
		return nil, each(func(i int) (err error) {
			ends[i], err = begin(f.clients[0], f.name())
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return taken.total().Memory / kept, each(func(i int) error { return ends[i]() })
}

// spread calls do for each number below n, from as many goroutines as keep a client busy. It returns the first error.
func spread(n int, do func(i int) error) error {
	var r runs
	var next atomic.Int64
	for range callers {
		r.all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && r.note(work{}, do(int(i))); i = next.Add(1) - 1 {
			}
		})
	}
	_, err := r.wait()
	return err
}
