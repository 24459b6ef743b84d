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

// batch returns how many payments a worker process makes on this database.
func (o order) batch() int {
	if o.Driver == "sqlite" {
		return 1 // it has one transaction at a time
	}
	return batch
}

// strike lets a worker process pay, do the fault at the step, and has clients come again. It adds to the tally.
func strike(t testing.TB, o order, sum *tally) {
	t.Helper()
	var w *worker
	for arrived := false; !arrived; arrived = w.arrive() {
		o.Payments = nil
		for range o.batch() {
			o.Payments = append(o.Payments, fmt.Sprintf("payment:%d", paymentNumber.Add(1)))
		}
		w = startWorker(t, o)
	}
	p, err := o.payer(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
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
// No payment is made twice, is lost, or is left to an operator. Without the proof some are, so the test can tell. The long form does
// it on each database, too, and stops and cuts off tasks and requests as well.
func TestFaults(t *testing.T) {
	t.Parallel()
	server := databases.StartPostgreSQL(t)
	s := system{"read committed", sqllock.Postgres, sql.LevelReadCommitted, on(server)}
	for _, mode := range []string{withProof, overHTTP, byTask} {
		t.Run(mode, func(t *testing.T) { testFaults(t, s, mode, testkit.Rounds(1, 200/batch)) })
	}
	for _, mode := range []string{unguarded, retrying, holding} {
		t.Run(mode, func(t *testing.T) { testFaults(t, s, mode, testkit.Rounds(1, 2)) })
	}
	t.Run("other databases", func(t *testing.T) {
		if !testkit.Long() {
			t.Skip("it needs HOLDFAST_LONG")
		}
		eachSystem(t, func(t *testing.T, s system) {
			rounds := 2
			if s.dialect == sqllock.SQLite {
				rounds = 20
			}
			testFaults(t, s, withProof, rounds)
		})
	})
}

// testFaults pays with each fault at each step, and appends its table to the file HOLDFAST_TABLE.
func testFaults(t *testing.T, s system, mode string, rounds int) {
	t.Helper()
	o, _ := newOrder(t, s).onRedis(t)
	o.Mode = mode
	proven := mode != unguarded && mode != retrying && mode != holding
	faults := []string{killed, stopped, cut}
	if s.dialect == sqllock.SQLite {
		faults = faults[:2] // it has no connection
	}
	sums := make(map[string]*tally)
	t.Run("at", func(t *testing.T) {
		for _, step := range steps {
			for _, fault := range faults {
				sum := new(tally)
				sums[step+fault] = sum
				if !testkit.Long() && (mode != withProof && fault != killed || !proven && step != replyLost) {
					continue // how a run is begun matters to a crash, and the baseline needs fewer
				}
				o := o
				o.Step, o.Fault = step, fault
				t.Run(fmt.Sprintf("%s, %s", step, fault), func(t *testing.T) {
					t.Parallel()
					for range rounds {
						strike(t, o, sum)
					}
					if proven && sum.twice+sum.lost+sum.operators > 0 {
						t.Error(sum)
					}
				})
			}
		}
	})
	all, table := new(tally), fmt.Sprintf("\n%s (%s, %s)\n\n| step | %s |\n|%s\n", mode, o.Driver, s.name, strings.Join(faults, " | "),
		strings.Repeat(" --- |", len(faults)+1))
	for _, step := range steps {
		table += "| " + step + " |"
		for _, fault := range faults {
			table += " " + sums[step+fault].cell() + " |"
			all.add(sums[step+fault])
		}
		table += "\n"
	}
	table += fmt.Sprintf("\n%v\n", all)
	t.Log(table)
	if !proven && all.twice+all.lost+all.operators == 0 {
		t.Errorf("the baseline has no fault: %v", all)
	}
	if name := os.Getenv("HOLDFAST_TABLE"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(table); err != nil {
			t.Error(err)
		}
	}
}
