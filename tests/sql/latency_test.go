//go:build unix

package sql_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestLatency logs what a payment takes without a guard, with one, and with guard and proof, in turns. It needs HOLDFAST_LONG.
func TestLatency(t *testing.T) {
	if !testkit.Long() {
		t.Skip("it measures, and needs HOLDFAST_LONG")
	}
	server := databases.StartPostgreSQL(t, "fsync=on")
	o := newOrder(t, system{"read committed", sqllock.Postgres, sql.LevelReadCommitted, on(server)})
	o.TTL = 30 * time.Second
	modes := []string{unguarded, retrying, withProof}
	took := make(map[string][]time.Duration)
	payers := make(map[string]*payer)
	rdb := testkit.Start(t).Client().Options()
	o.Network, o.Redis = rdb.Network, rdb.Addr
	for _, mode := range modes {
		o.Mode = mode
		payers[mode] = o.mustPayer(t, nil)
	}
	for i := range 3000 {
		for _, mode := range modes {
			began := time.Now()
			if err := payers[mode].pay(t.Context(), fmt.Sprintf("%s:%d", mode, i), nil); err != nil {
				t.Fatal(err)
			}
			if i >= 100 {
				took[mode] = append(took[mode], time.Since(began))
			}
		}
	}
	for _, mode := range modes {
		t.Logf("%s: p50 %v, p99 %v", mode, coretest.Quantile(took[mode], 0.5).Round(10*time.Microsecond),
			coretest.Quantile(took[mode], 0.99).Round(10*time.Microsecond))
	}
}
