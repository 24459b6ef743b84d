package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// sell opens a shop, lets the crowd in, prints what came of it, and closes the shop. It returns nil without an error if
// ctx ended before the shop was open.
func sell(ctx context.Context, cfg config) (r *report, err error) {
	s, err := openSite(ctx, cfg)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Printf("%d replicas of the shop, %s, %s\n", cfg.replicas, s.redis.kind, guardKind(cfg))
	fmt.Printf("%d users want one of %d vouchers and send everything %d times\n\n", cfg.users, cfg.stock, cfg.attempts)
	if r, err = hold(ctx, cfg, s, newProgress(os.Stdout, cfg.users)); err != nil {
		return nil, err
	}
	r.print(os.Stdout)
	return r, nil
}

func guardKind(cfg config) string {
	if cfg.unguarded {
		return "NO GUARDS"
	}
	return "guards by holdfast"
}

// status returns the exit status for a sale; r is nil if it was interrupted before it began.
func (r *report) status() int {
	switch {
	case r == nil:
		return exitInterrupted
	case r.broken():
		return exitBroken
	case r.interrupted:
		return exitInterrupted
	}
	return exitFine
}

// hold lets the crowd at the shop and returns what came of it.
func hold(ctx context.Context, cfg config, s *site, p progress) (*report, error) {
	tally := newCrowd(cfg, s.urls(), p.add).run(ctx)
	p.end()
	// ctx may have ended, but receipts are under way, and the database has to be looked at all the same.
	after := context.WithoutCancel(ctx)
	left := time.Now()
	unsent, err := s.awaitMail(after)
	mail := time.Since(left)
	if err != nil {
		return nil, err
	}
	audit, err := s.replicas[0].shop.store.audit(after, item, cfg.stock)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	audit.calls, audit.peak = s.gateway.counts()
	return &report{
		config:      cfg,
		tally:       tally,
		audit:       audit,
		watch:       s.watch,
		unsent:      unsent,
		mail:        mail,
		stale:       s.stale(),
		interrupted: ctx.Err() != nil,
		embedded:    cfg.redisURL == "",
	}, nil
}
