package main

import (
	"context"
	"log/slog"
	"time"

	bolt "go.etcd.io/bbolt"
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

// settlement is what is booked for a tick.
type settlement struct {
	Tick    int64  `json:"tick"` // seconds since 1970
	Replica string `json:"replica"`
	Orders  int    `json:"orders"`
}

// addSettlement writes a settlement.
func (s *store) addSettlement(ctx context.Context, tick time.Time, replica string) error {
	return s.write(ctx, func(tx *bolt.Tx) error {
		booked := settlement{Tick: tick.Unix(), Replica: replica}
		for _, err := range rows[order](tx, ordersTable, "") {
			if err != nil {
				return err
			}
			booked.Orders++
		}
		_, err := insert(tx, settlementsTable, "", booked)
		return err
	})
}
