package main

import (
	"context"
	"fmt"
)

// hold lets the crowd at the shop and returns what came of it.
func hold(ctx context.Context, cfg config, s *site, p progress) (*report, error) {
	tally := newCrowd(cfg, s.urls(), p.add).run(ctx)
	p.end()
	// ctx may have ended, but receipts are under way, and the database has to be looked at all the same.
	after := context.WithoutCancel(ctx)
	unsent, err := s.awaitMail(after)
	if err != nil {
		return nil, err
	}
	audit, err := s.replicas[0].shop.store.audit(after, item, cfg.stock)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &report{
		config:      cfg,
		tally:       tally,
		audit:       audit,
		watch:       s.watch,
		unsent:      unsent,
		stale:       s.stale(),
		interrupted: ctx.Err() != nil,
	}, nil
}
