package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// raise gives all leases the greatest of their tokens in Redis and returns it. So the work under all of them has one
// token, which every later grant of any of them exceeds. It fails with a [memberLost] if one of them is over.
func raise(ctx context.Context, leases []*Lease, patience time.Duration) (int64, error) {
	var token int64
	for _, l := range leases {
		token = max(token, l.token)
	}
	var smaller []*Lease
	for _, l := range leases {
		for _, leaf := range l.singles() {
			if leaf.token < token {
				smaller = append(smaller, leaf)
			}
		}
	}
	errs := transport.DoGrouped(ctx, len(smaller), func(ctx context.Context, i int) error {
		return smaller[i].raise(ctx, token, patience)
	})
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return token, nil
}

// raise waits with patience for a slot that moves.
func (l *Lease) raise(ctx context.Context, token int64, patience time.Duration) error {
	var held bool
	err := transport.Retry(ctx, patience, transport.SlotMigrating, func() error {
		return transport.RetryUntilAnswered(ctx, func(ctx context.Context) (err error) {
			held, err = l.protocol.Raise(ctx, &l.hold, token)
			return err
		})
	})
	switch {
	case err != nil:
		return errorf("holdfast: lock %q: %w", l.hold.Name, failure(ctx, l.hold.Keys.Lock, err))
	case !held:
		if l.keeper.renewer.Remove(&l.entry) {
			l.keeper.lost(l, errTaken)
		}
		return &memberLost{name: l.hold.Name, cause: errTaken}
	}
	l.keeper.renewer.Raised(&l.entry, token)
	return nil
}
