package main

import (
	"context"
	"log/slog"
	"time"
)

// settle closes the books at a tick of the schedule: it writes down how many orders there are. Two of them for one tick
// would be booked twice.
func (s *shop) settle(ctx context.Context, tick time.Time) error {
	err := s.store.addSettlement(ctx, tick, s.name)
	if err != nil {
		slog.Error("flashsale: settlement failed", "tick", tick, "error", err)
	}
	return err
}

// addSettlement writes a settlement.
func (s *store) addSettlement(ctx context.Context, tick time.Time, replica string) error {
	_, err := s.db.ExecContext(ctx,
		`INSERT INTO settlements (tick, replica, orders) SELECT ?, ?, COUNT(*) FROM orders`, tick.Unix(), replica)
	return err
}
