//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// batch is how many payments one worker process makes.
const batch = 10

var paymentNumber atomic.Int64

// strike lets a worker process pay, do the fault at the step, and has clients come again. It adds to the tally.
func strike(t testing.TB, o order, sum *tally) {
	t.Helper()
	for range batch {
		o.Payments = append(o.Payments, fmt.Sprintf("payment:%d", paymentNumber.Add(1)))
	}
	p, err := o.payer(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	w := startWorker(t, o)
	w.arrive()
	if o.Fault == killed {
		w.end()
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var clients sync.WaitGroup
	for _, payment := range o.Payments {
		clients.Go(func() {
			answered, err := p.retry(ctx, payment)
			sum.mu.Lock()
			defer sum.mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("%s, %s, %s: %v", o.Mode, o.Step, o.Fault, err)
			case !answered:
				sum.operators++
			}
		})
	}
	if o.Fault == stopped {
		time.Sleep(3 * o.TTL) // its lease expires, and the clients run beside it
		w.wake()
	}
	clients.Wait()
	if o.Fault != killed {
		w.end()
	}
	sum.count(t, p.db, o.Payments)
}

// count counts the debits of payments.
func (s *tally) count(t testing.TB, db *sql.DB, payments []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, payment := range payments {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM debit WHERE payment = '" + payment + "'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		s.payments++
		switch {
		case n == 0:
			s.lost++
		case n > 1:
			s.twice++
		}
	}
}

// TestFaults kills a process, stops it for longer than its lease, or cuts its connection, at each step of a payment, on PostgreSQL.
// No payment is made twice, is lost, or is left to an operator. Without the proof some are, so the test can tell.
func TestFaults(t *testing.T) {
	t.Parallel()
	server := databases.StartPostgreSQL(t)
	database := server.Create(t)
	db, err := sql.Open(server.Driver(), server.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	newBank(t, db, sqllock.Postgres)
	_ = db.Close()
	rdb := testkit.Start(t).Client().Options()
	sums := make(map[string]*tally)
	t.Run("at", func(t *testing.T) {
		for _, mode := range []string{withProof, overHTTP, unguarded, retrying, holding} {
			for _, step := range steps {
				for _, fault := range []string{killed, stopped, cut} {
					rounds, proven := testkit.Rounds(1, 200/batch), mode == withProof || mode == overHTTP
					if !proven {
						if rounds = testkit.Rounds(1, 2); !testkit.Long() && (fault != killed || step != replyLost) {
							continue // the baseline needs fewer
						}
					}
					sum := new(tally)
					sums[fmt.Sprintf("| %s | %s | %s |", mode, step, fault)] = sum
					t.Run(fmt.Sprintf("%s, %s, %s", mode, step, fault), func(t *testing.T) {
						t.Parallel()
						for range rounds {
							strike(t, order{
								Mode: mode, Step: step, Fault: fault, Network: rdb.Network, Redis: rdb.Addr, Driver: server.Driver(),
								DSN: server.DSN(database), TTL: 300 * time.Millisecond,
							}, sum)
						}
						if proven && sum.twice+sum.lost+sum.operators > 0 {
							t.Error(sum)
						}
					})
				}
			}
		}
	})
	var table strings.Builder
	for _, mode := range []string{withProof, overHTTP, unguarded, retrying, holding} {
		var all tally
		for _, step := range steps {
			for _, fault := range []string{killed, stopped, cut} {
				row := fmt.Sprintf("| %s | %s | %s |", mode, step, fault)
				if sum := sums[row]; sum != nil {
					fmt.Fprintf(&table, "%s %d | %d | %d | %d |\n", row, sum.payments, sum.twice, sum.lost, sum.operators)
					all.payments, all.twice, all.lost, all.operators = all.payments+sum.payments, all.twice+sum.twice, all.lost+sum.lost, all.operators+sum.operators
				}
			}
		}
		t.Logf("%s: %v", mode, &all)
		if mode != withProof && mode != overHTTP && all.twice+all.lost+all.operators == 0 {
			t.Errorf("%s: the baseline has no fault: %v", mode, &all)
		}
	}
	if name := os.Getenv("HOLDFAST_TABLE"); name != "" {
		if err := os.WriteFile(name, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}
