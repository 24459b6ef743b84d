package main

import (
	"context"
	"fmt"
)

// hold lets the crowd at the shop and returns what came of it.
func hold(ctx context.Context, cfg config, s *site, p progress) (*report, error) {
	tally := newCrowd(cfg, s.urls(), p.add).run(ctx)
	p.end()
	// ctx may have ended, but the database has to be looked at all the same.
	audit, err := s.replicas[0].shop.store.audit(context.WithoutCancel(ctx), item, cfg.stock)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &report{
		config:      cfg,
		tally:       tally,
		audit:       audit,
		watch:       s.watch,
		stale:       s.stale(),
		interrupted: ctx.Err() != nil,
	}, nil
}
