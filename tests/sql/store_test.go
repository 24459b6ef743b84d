//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const key = "payment:42"

// TestStore runs the tests below on each database, at each isolation level.
func TestStore(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T, s system) {
		t.Helper()
		for name, test := range map[string]func(*testing.T, system){
			"InTx":                       testInTx,
			"Rollback":                   testRollback,
			"TransactionEndedByFunction": testTransactionEndedByFunction,
			"Together":                   testTogether,
			"Prove":                      testProve,
			"Fence":                      testFence,
			"Scope":                      testScope,
			"Keys":                       testKeys,
			"CreateTables":               testCreateTables,
			"Resolve":                    testResolve,
			"Delete":                     testDelete,
			"DeleteBefore":               testDeleteBefore,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	}
	eachSystem(t, all)
	t.Run("PostgreSQL by lib/pq", func(t *testing.T) {
		server := databases.StartPostgreSQL(t)
		all(t, system{"read committed", sqllock.Postgres, sql.LevelReadCommitted, func(t testing.TB) (driver, dsn string) {
			return "postgres", server.DSN(server.Create(t)) + " sslmode=disable"
		}})
	})
}

// testInTx: effect and proof commit together, and a later attempt gets the value of the proof, whatever Redis has lost.
func testInTx(t *testing.T, s system) {
	server, locks := start(t)
	b := s.bank(t)
	once := locks.Once(key, core.WithProof(b.Store), core.WithFingerprint([]byte("7")))
	for i := range 4 {
		r, err := once.Do(t.Context(), b.pays())
		if err != nil || string(r.Value) != "paid" || r.Replayed != (i > 0) {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
		if i > 0 {
			server.Client().FlushAll(t.Context())
		}
	}
	if n := b.debits(); n != 1 {
		t.Errorf("%d debits", n)
	}
	c, err := b.Committed(t.Context(), "lock:"+key)
	if err != nil || string(c.Value) != "paid" || c.Attempt != 1 || c.Token == 0 || string(c.Fingerprint) != "7" ||
		time.Since(c.At) > within {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := b.Committed(t.Context(), "lock:payment:43"); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// testRollback: an error, a panic and a value that is too large leave neither effect nor proof, and the run may begin anew.
func testRollback(t *testing.T, s system) {
	_, locks := start(t)
	b := s.bank(t)
	once := locks.Once(key, core.WithProof(b.Store), core.WithMaxValue(10))
	failed := errors.New("failed")
	r, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		_, err := b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := debit(ctx, tx)
			return nil, errors.Join(err, failed)
		})
		wantErr(t, err, failed)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				_, _ = debit(ctx, tx)
				panic("failed")
			})
		}()
		_, err = b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := debit(ctx, tx)
			return make([]byte, 11), err
		})
		wantErr(t, err, core.ErrValueTooLarge)
		if n := b.debits(); n != 0 {
			t.Errorf("%d debits", n)
		}
		value, err := b.InTx(ctx, debit)
		_, second := b.InTx(ctx, debit)
		wantErr(t, second, sqllock.ErrSecondTx)
		return value, err
	})
	if err != nil || string(r.Value) != "paid" || b.debits() != 1 {
		t.Errorf("%+v, %v, %d debits", r, err, b.debits())
	}
}

// testTransactionEndedByFunction: a function that ends the transaction itself is told so. What it has done after that is not committed,
// unless the database was in no transaction any more. Where it may have been, or the function has committed its row, nobody knows what
// the key has done: it does not run again, and is not taken for completed.
func testTransactionEndedByFunction(t *testing.T, s system) {
	raw := func(statements ...string) func(tx *sql.Tx) error {
		return func(tx *sql.Tx) error {
			for _, statement := range statements {
				if _, err := tx.Exec(statement); err != nil {
					return err
				}
			}
			return nil
		}
	}
	const again, held, undecided = "INSERT INTO debit (payment, n) VALUES ('43', 1)", "held", "undecided"
	type test struct {
		end    func(tx *sql.Tx) error
		debits int
		then   string // what later calls get; "" if they pay
	}
	tests := map[string]test{
		"Commit":   {(*sql.Tx).Commit, 1, undecided},
		"Rollback": {(*sql.Tx).Rollback, 0, ""},
		"COMMIT":   {raw("COMMIT"), 1, undecided},
		"anew":     {raw("COMMIT", "BEGIN", again), 1, undecided},
		"ROLLBACK": {raw("ROLLBACK"), 0, held},
	}
	if s.dialect != sqllock.SQLite {
		tests["COMMIT AND CHAIN"] = test{raw("COMMIT AND CHAIN", again), 1, undecided}
		tests["ROLLBACK AND CHAIN"] = test{raw("ROLLBACK AND CHAIN", again), 0, held}
	}
	switch s.dialect {
	case sqllock.MySQL: // it commits nothing by itself
		tests["ROLLBACK"] = test{raw("ROLLBACK", again), 0, ""}
		tests["ROLLBACK AND CHAIN"] = test{raw("ROLLBACK AND CHAIN", again), 0, ""}
		tests["implicit commit"] = test{raw("CREATE TABLE other (n INTEGER)"), 1, undecided}
	case sqllock.SQLite:
		tests["OR ROLLBACK"] = test{func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT OR ROLLBACK INTO holdfast_proof SELECT * FROM holdfast_proof")
			if err == nil {
				return errors.New("no conflict")
			}
			_, err = tx.Exec(again)
			return err
		}, 1, held}
		tests["interrupted statement"] = test{func(tx *sql.Tx) error {
			bounded, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := tx.ExecContext(bounded, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1000000000) "+
				"INSERT INTO debit (payment, n) SELECT '44', n FROM c")
			if err == nil {
				return errors.New("not interrupted")
			}
			_, err = tx.Exec(again)
			return err
		}, 1, held}
	}
	server, locks := start(t)
	rdb := server.Client()
	for name, test := range tests {
		for _, failure := range []error{nil, errors.New("failed")} {
			name := fmt.Sprintf("%s, %v", name, failure)
			rdb.FlushAll(t.Context())
			b := s.bank(t, sqllock.OnlyEffect())
			once := locks.Once(key, core.WithProof(b.Store))
			_, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
				value, err := b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
					value, err := debit(ctx, tx)
					if err := errors.Join(err, test.end(tx)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					return value, errors.Join(err, failure)
				})
				if released := core.Release(ctx); (released == nil) != (test.then == "") {
					t.Errorf("%s: Release: %v", name, released)
				}
				return value, err
			})
			if err == nil || !strings.Contains(err.Error(), "itself") || failure != nil && !errors.Is(err, failure) {
				t.Errorf("%s: error %v", name, err)
			}
			if n := b.debits(); n != test.debits {
				t.Errorf("%s: %d debits", name, n)
			}
			for range 2 {
				r, err := once.Do(t.Context(), b.pays())
				if test.then == "" && (err != nil || b.debits() != 1) ||
					test.then == held && (!errors.Is(err, core.ErrOutcomeUnknown) || b.debits() != test.debits) ||
					test.then == undecided && (err == nil || !strings.Contains(err.Error(), "Store.Delete") || b.debits() != test.debits) {
					t.Errorf("%s: %+v, %v, %d debits", name, r, err, b.debits())
				}
				if test.then != held {
					rdb.FlushAll(t.Context())
				}
			}
			if test.then == undecided { // an operator finds out, and decides
				if found, err := b.Delete(t.Context(), "lock:"+key); !found || err != nil {
					t.Errorf("%s: %v, %v", name, found, err)
				}
				if _, err := once.Do(t.Context(), b.pays()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// testTogether: of two and three attempts at once, which Redis has all let run, one commits, also if the first rolls back.
func testTogether(t *testing.T, s system) {
	for _, n := range []int{2, 3} {
		for _, firstFails := range []bool{false, true} {
			b := s.bank(t)
			var all sync.WaitGroup
			inside, goOn := make(chan struct{}), make(chan struct{})
			var ran, paid, replayed atomic.Int64
			for i := range n {
				_, locks := start(t) // a Redis each: nothing but the database excludes them
				all.Go(func() {
					if i > 0 {
						<-inside
					}
					r, err := locks.Once(key, core.WithProof(b.Store)).Do(t.Context(), func(ctx context.Context) ([]byte, error) {
						return b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
							if ran.Add(1); i > 0 {
								return debit(ctx, tx)
							}
							value, err := debit(ctx, tx)
							close(inside)
							<-goOn
							if firstFails {
								err = errors.New("failed")
							}
							return value, err
						})
					})
					switch {
					case err != nil && (i > 0 || !firstFails):
						t.Errorf("attempt %d of %d, first fails %v: %v", i, n, firstFails, err)
					case err == nil && r.Replayed:
						replayed.Add(1)
					case err == nil:
						paid.Add(1)
					}
				})
			}
			<-inside
			time.Sleep(50 * time.Millisecond) // the others wait for the row
			close(goOn)
			all.Wait()
			wantRan, wantReplayed := int64(1), int64(n-1)
			if firstFails {
				wantRan++
				wantReplayed--
			}
			if ran.Load() != wantRan || paid.Load() != 1 || replayed.Load() != wantReplayed || b.debits() != 1 {
				t.Errorf("of %d: %d ran, %d paid, %d replayed, %d debits, first fails %v", n, ran.Load(), paid.Load(), replayed.Load(),
					b.debits(), firstFails)
			}
		}
	}
}

// testProve: the proof in a transaction of one's own.
func testProve(t *testing.T, s system) {
	server, locks := start(t)
	b := s.bank(t)
	once := locks.Once(key, core.WithProof(b.Store))
	prove := func(end func(*sql.Tx) error) error {
		_, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
			tx, err := b.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
			if err != nil {
				return nil, err
			}
			defer tx.Rollback()
			if err := b.Prove(ctx, tx); err != nil {
				return nil, err
			}
			if _, err := debit(ctx, tx); err != nil {
				return nil, err
			}
			return nil, end(tx)
		})
		return err
	}
	failed := errors.New("failed")
	wantErr(t, prove(func(tx *sql.Tx) error { return errors.Join(failed, tx.Rollback()) }), failed)
	for range 3 {
		if err := prove((*sql.Tx).Commit); err != nil {
			t.Error(err)
		}
		server.Client().FlushAll(t.Context())
	}
	if n := b.debits(); n != 1 {
		t.Errorf("%d debits", n)
	}
}

// testFence: a holder that a later one has overtaken does not write.
func testFence(t *testing.T, s system) {
	_, locks := start(t)
	b := s.bank(t, sqllock.WithScope("tenant", func(ctx context.Context) string {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		return tenant
	}))
	lock := locks.Mutex("stock")
	fence := func(ctx context.Context, resource string) error {
		tx, err := b.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := b.Fence(ctx, tx, resource); err != nil {
			return err
		}
		return tx.Commit()
	}
	ada, bob := context.WithValue(t.Context(), tenantKey{}, "ada"), context.WithValue(t.Context(), tenantKey{}, "bob")
	older, err := lock.Lock(ada)
	if err != nil {
		t.Fatal(err)
	}
	old := context.WithoutCancel(older.Context())
	bobs := context.WithValue(old, tenantKey{}, "bob")
	_ = older.Unlock(ada)
	newer := coretest.MustLockWith(t, ada, lock)
	for i, step := range []struct {
		ctx      context.Context
		resource string
		fenced   bool
	}{
		{old, "stock", false},
		{old, "stock", false},
		{newer.Context(), "stock", false},
		{newer.Context(), "stock", false},
		{old, "stock", true},
		{old, "STOCK", false},
		{bobs, "stock", false},
		{newer.Context(), "stock", false},
	} {
		if err := fence(step.ctx, step.resource); errors.Is(err, sqllock.ErrFenced) != step.fenced || err != nil && !step.fenced {
			t.Errorf("step %d: %v", i, err)
		}
	}
	wantErr(t, fence(ada, "stock"), core.ErrNotHeld)
	wantErr(t, fence(newer.Context(), strings.Repeat("x", 513)), core.ErrInvalidOption)
	wantText(t, fence(context.WithValue(newer.Context(), tenantKey{}, ""), "stock"), "no scope")
	_ = bob
}

type tenantKey struct{}

// testScope: one key of two tenants has two proofs.
func testScope(t *testing.T, s system) {
	b := s.bank(t, sqllock.WithTables("Proof", "fence_2"), sqllock.WithScope("tenant", func(ctx context.Context) string {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		return tenant
	}))
	for i, tenant := range []string{"ada", "bob", "ada"} {
		_, locks := start(t)
		ctx := context.WithValue(t.Context(), tenantKey{}, tenant)
		r, err := locks.Once(key, core.WithProof(b.Store)).Do(ctx, b.pays())
		if err != nil || r.Replayed != (i == 2) {
			t.Errorf("%s: %+v, %v", tenant, r, err)
		}
	}
	if n := b.debits(); n != 2 {
		t.Errorf("%d debits", n)
	}
	_, err := b.Committed(t.Context(), key)
	wantText(t, err, "no scope")
}

// testCreateTables: tables that exist are left alone, so that a process that starts waits for no payment, and no payment for it.
func testCreateTables(t *testing.T, s system) {
	_, locks := start(t)
	b := s.bank(t)
	_, err := locks.Once(key, core.WithProof(b.Store)).Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		return b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			if _, err := debit(ctx, tx); err != nil {
				return nil, err
			}
			bounded, cancel := context.WithTimeout(ctx, within/4)
			defer cancel()
			return nil, b.CreateTables(bounded)
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// testKeys: keys and scopes count byte by byte, whatever the database takes for the same text. A key can be any bytes, a scope is text.
func testKeys(t *testing.T, s system) {
	scope := ""
	b := s.bank(t, sqllock.WithScope("tenant", func(context.Context) string { return scope }))
	_, locks := start(t)
	keys, scopes := []string{"pay:a", "pay:A", "pay:a ", "pay:á", "pay:\xff", "pay:\xfe"}, []string{"a", "A", "á"}
	for _, scope = range scopes {
		for _, k := range keys {
			for i := range 2 {
				once := locks.Once(k, core.WithProof(b.Store))
				if r, err := once.Do(t.Context(), b.pays()); err != nil || r.Replayed != (i > 0) {
					t.Errorf("%q of %q: %+v, %v", k, scope, r, err)
				}
				seen, err := once.Peek(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if c, err := b.Committed(t.Context(), seen.ProofKey); err != nil || c == nil {
					t.Errorf("%q of %q: %+v, %v", k, scope, c, err)
				}
				_ = locks.Once(k).Forget(t.Context(), seen)
			}
		}
	}
	if n := b.debits(); n != len(keys)*len(scopes) {
		t.Errorf("%d debits", n)
	}
	for _, scope = range []string{"\xff", "a\x00", strings.Repeat("x", 256)} {
		_, err := locks.Once("other", core.WithProof(b.Store)).Do(t.Context(), b.pays())
		wantText(t, err, "scope")
	}
}

// testResolve: an operator has found out that a held run has had its effect. The run continues in its process and commits nothing, and
// the key does not run again after Redis has lost the record.
func testResolve(t *testing.T, s system) {
	server, locks := start(t)
	b := s.bank(t)
	once := locks.Once(key, core.WithProof(b.Store), core.WithFailurePolicy(core.HoldFailures))
	attempt, err := once.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Hold(t.Context(), "look"); err != nil {
		t.Fatal(err)
	}
	seen, err := once.Peek(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := once.Resolve(t.Context(), seen, []byte("by hand")); err != nil {
		t.Fatal(err)
	}
	_, err = b.InTx(context.WithoutCancel(attempt.Context()), debit)
	wantErr(t, err, core.ErrCompleted)
	for range 2 {
		r, err := once.Do(t.Context(), b.pays())
		if err != nil || string(r.Value) != "by hand" || !r.Replayed {
			t.Errorf("%+v, %v", r, err)
		}
		server.Client().FlushAll(t.Context())
	}
	wantErr(t, b.Resolve(t.Context(), seen.ProofKey, core.Committed{}), core.ErrCompleted)
	wantErr(t, b.Resolve(t.Context(), "", core.Committed{}), core.ErrInvalidName)
	if n := b.debits(); n != 0 {
		t.Errorf("%d debits", n)
	}
}

// testDelete: an operator finds the row of a key by its record, and deletes it, so that the key may run again.
func testDelete(t *testing.T, s system) {
	_, locks := start(t)
	b := s.bank(t)
	once := locks.Once(key, core.WithProof(b.Store))
	for range 2 {
		if _, err := once.Do(t.Context(), b.pays()); err != nil {
			t.Fatal(err)
		}
		seen, err := once.Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := b.Committed(t.Context(), seen.ProofKey); err != nil || c == nil || string(c.Value) != "paid" {
			t.Errorf("%+v, %v", c, err)
		}
		wantErr(t, once.Forget(t.Context(), seen), core.ErrCompleted)
		for _, want := range []bool{true, false} {
			if found, err := b.Delete(t.Context(), seen.ProofKey); found != want || err != nil {
				t.Errorf("%v, %v, want %v", found, err, want)
			}
		}
		if err := once.Forget(t.Context(), seen); err != nil {
			t.Error(err)
		}
	}
	if n := b.debits(); n != 2 {
		t.Errorf("%d debits", n)
	}
	if _, err := once.Do(t.Context(), b.pays()); err != nil {
		t.Fatal(err)
	}
	seen, _ := locks.Once(key).Peek(t.Context()) // of a program without the proof
	if found, err := b.Delete(t.Context(), seen.ProofKey); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	_, err := b.Committed(t.Context(), "")
	wantErr(t, err, core.ErrInvalidName)
	_, err = b.Delete(t.Context(), "")
	wantErr(t, err, core.ErrInvalidName)
}

// testDeleteBefore: the oldest proofs go, in batches, and the log warns of those that records may still need.
func testDeleteBefore(t *testing.T, s system) {
	var log coretest.Record
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithLogger(coretest.TextLogger(&log)))
	b := s.bank(t)
	for _, k := range []string{"a", "b", "c"} {
		if _, err := locks.Once(k, core.WithProof(b.Store)).Do(t.Context(), b.pays()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.DeleteBefore(t.Context(), time.Now().Add(-time.Hour), 10); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, want := range []int64{2, 1, 0} {
		if n, err := b.DeleteBefore(t.Context(), time.Now().Add(time.Second), 2); n != want || err != nil {
			t.Errorf("%d, %v, want %d", n, err, want)
		}
	}
	if n := strings.Count(log.String(), "younger than the retention"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
	_, err := b.DeleteBefore(t.Context(), time.Now(), 0)
	wantErr(t, err, core.ErrInvalidOption)
}

// TestDeleteBeforeWithoutOnce: a process that only cleans up warns of proofs that records of the default retention may still need.
func TestDeleteBeforeWithoutOnce(t *testing.T) {
	var log coretest.Record
	before := slog.Default()
	slog.SetDefault(coretest.TextLogger(&log))
	defer slog.SetDefault(before)
	b := onSQLite.bank(t)
	for lines, kept := range []time.Duration{48 * time.Hour, time.Hour} {
		if _, err := b.DeleteBefore(t.Context(), time.Now().Add(-kept), 10); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "younger than the retention"); n != lines {
			t.Errorf("kept for %v: %d lines, want %d", kept, n, lines)
		}
	}
}

// TestBadInput: errors that say what is wrong, before anything has happened.
func TestBadInput(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	for name, make := range map[string]func() (*sqllock.Store, error){
		"dialect":  func() (*sqllock.Store, error) { return sqllock.New(db, 0) },
		"database": func() (*sqllock.Store, error) { return sqllock.New(nil, sqllock.SQLite) },
		"name": func() (*sqllock.Store, error) {
			return sqllock.New(db, sqllock.SQLite, sqllock.WithTables(`a"; DROP`, "b"))
		},
		"same":   func() (*sqllock.Store, error) { return sqllock.New(db, sqllock.SQLite, sqllock.WithTables("a", "a")) },
		"schema": func() (*sqllock.Store, error) { return sqllock.New(db, sqllock.SQLite, sqllock.WithSchema("")) },
		"column": func() (*sqllock.Store, error) {
			return sqllock.New(db, sqllock.SQLite, sqllock.WithScope("Token", func(context.Context) string { return "" }))
		},
		"scope": func() (*sqllock.Store, error) { return sqllock.New(db, sqllock.SQLite, sqllock.WithScope("a", nil)) },
		"read-only": func() (*sqllock.Store, error) {
			return sqllock.New(db, sqllock.SQLite, sqllock.WithTxOptions(sql.TxOptions{ReadOnly: true}))
		},
		"busy": func() (*sqllock.Store, error) {
			impatient, err := sql.Open("sqlite", ":memory:")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = impatient.Close() })
			return sqllock.New(impatient, sqllock.SQLite)
		},
	} {
		s, err := make()
		if s != nil || !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	_, locks := start(t)
	b := newBank(t, db, sqllock.SQLite)
	other := newBank(t, openSQLite(t), sqllock.SQLite)
	none, err := sqllock.New(openSQLite(t), sqllock.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.InTx(t.Context(), debit)
	wantErr(t, err, core.ErrNotGuarded, "WithProof")
	_, err = locks.Once("a").Do(t.Context(), b.pays())
	wantErr(t, err, core.ErrNotGuarded, "WithProof")
	_, err = locks.Once("b", core.WithProof(other.Store)).Do(t.Context(), b.pays())
	wantErr(t, err, core.ErrInvalidOption, "not this store")
	_, err = locks.Once("c", core.WithProof(none)).Do(t.Context(), func(ctx context.Context) ([]byte, error) { return none.InTx(ctx, debit) })
	wantText(t, err, "holdfast_proof", "SQLite", "no such table")
	foreign := newBank(t, openSQLite(t), sqllock.Postgres) // which SQLite understands until the first InTx
	_, err = locks.Once("f", core.WithProof(foreign.Store)).Do(t.Context(), foreign.pays())
	wantText(t, err, "in PostgreSQL", "no such function")
	_, err = locks.Once("d", core.WithProof(b.Store)).Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		return b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) { return b.InTx(ctx, debit) })
	})
	wantErr(t, err, sqllock.ErrSecondTx)
	_, err = locks.Once("e", core.WithProof(b.Store)).Do(t.Context(), func(ctx context.Context) ([]byte, error) { return b.InTx(ctx, nil) })
	wantErr(t, err, core.ErrInvalidOption)
	if n := b.debits(); n != 0 {
		t.Errorf("%d debits", n)
	}
}

// TestServersRefuse: a database of another dialect, a read-only one, and a transaction of another database.
func TestServersRefuse(t *testing.T) {
	t.Parallel()
	postgres, maria := databases.StartPostgreSQL(t), databases.StartMariaDB(t)
	_, locks := start(t)
	run := func(s *sqllock.Store) error {
		_, err := locks.Once(key, core.WithProof(s)).Do(t.Context(), func(ctx context.Context) ([]byte, error) { return s.InTx(ctx, debit) })
		return err
	}
	for _, wrong := range []struct {
		db      *sql.DB
		dialect sqllock.Dialect
	}{{postgres.Open(t), sqllock.MySQL}, {maria.Open(t), sqllock.Postgres}, {maria.Open(t), sqllock.SQLite}} {
		s, err := sqllock.New(wrong.db, wrong.dialect)
		if err == nil {
			err = s.CreateTables(t.Context())
		}
		wantText(t, err, wrong.dialect.String())
		if s != nil {
			wantText(t, run(s), wrong.dialect.String())
		}
	}
	db := postgres.Open(t)
	b := newBank(t, db, sqllock.Postgres)
	other := newBank(t, postgres.Open(t), sqllock.Postgres, sqllock.WithTables("a", "b"))
	_, err := locks.Once(key, core.WithProof(b.Store)).Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		tx, err := other.db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		return nil, b.Prove(ctx, tx)
	})
	wantText(t, err, "holdfast_proof", "does not exist")
	readOnly := newBank(t, postgres.Open(t), sqllock.Postgres)
	readOnly.db.SetMaxIdleConns(0)
	readOnly.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	wantText(t, run(readOnly.Store), "read-only")
}

// TestCreateTablesWithoutRight: a user who may only read and write the tables can call CreateTables, and is told of tables that there are
// not.
func TestCreateTablesWithoutRight(t *testing.T) {
	t.Parallel()
	postgres, maria := databases.StartPostgreSQL(t), databases.StartMariaDB(t)
	for _, test := range []struct {
		dialect sqllock.Dialect
		server  *databases.Server
		grants  []string
		user    func(dsn string) string
	}{
		{sqllock.Postgres, postgres, []string{
			"CREATE ROLE app LOGIN",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app",
		}, func(dsn string) string { return strings.Replace(dsn, "user=postgres", "user=app", 1) }},
		{sqllock.MySQL, maria.Server, []string{
			"CREATE USER app@localhost",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO app@localhost",
		}, func(dsn string) string { return strings.Replace(dsn, "root@", "app@", 1) }},
	} {
		dsn := test.server.DSN(test.server.Create(t))
		owner, err := sql.Open(test.server.Driver(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer owner.Close()
		b := newBank(t, owner, test.dialect)
		for _, grant := range test.grants {
			b.exec(grant)
		}
		app, err := sql.Open(test.server.Driver(), test.user(dsn))
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		for _, tables := range []struct {
			name  string
			exist bool
		}{{"holdfast_proof", true}, {"holdfast_other", false}} {
			store, err := sqllock.New(app, test.dialect, sqllock.WithTables(tables.name, "holdfast_fence"))
			if err != nil {
				t.Fatal(err)
			}
			if err := store.CreateTables(t.Context()); (err == nil) != tables.exist {
				t.Errorf("%v, %s: %v", test.dialect, tables.name, err)
			}
		}
	}
}

// TestProveBehindGuard: a request that finds the proof of an earlier one by Prove gets 409, and the log warns of nothing.
func TestProveBehindGuard(t *testing.T) {
	t.Parallel()
	var log coretest.Record
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithLogger(coretest.TextLogger(&log)))
	b := onSQLite.bank(t)
	h := httplock.Idempotent(locks, httplock.Unscoped(), core.WithProof(b.Store))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, err := b.db.BeginTx(r.Context(), nil)
		if err == nil {
			defer tx.Rollback()
			err = b.Prove(r.Context(), tx)
		}
		if err == nil {
			_, err = debit(r.Context(), tx)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	for _, want := range []int{http.StatusCreated, http.StatusConflict} {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
		}
		server.Client().FlushAll(t.Context())
	}
	if n := b.debits(); n != 1 || strings.Contains(log.String(), "without its transaction") {
		t.Errorf("%d debits, the log has %s", n, log.String())
	}
}
