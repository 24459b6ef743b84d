//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// system is a database with an isolation level.
type system struct {
	name    string
	dialect sqllock.Dialect
	level   sql.IsolationLevel
	// create makes a database, or a schema of one.
	create func(t testing.TB) (driver, dsn string)
}

// open connects to a new database or schema until the test ends.
func (s system) open(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := s.create(t)
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// on returns how schemas of a server are made.
func on(server *databases.Server) func(t testing.TB) (driver, dsn string) {
	return func(t testing.TB) (driver, dsn string) {
		t.Helper()
		return server.Driver(), server.CreateSchema(t)
	}
}

var levels = map[string]sql.IsolationLevel{
	"read committed": sql.LevelReadCommitted, "repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable,
}

// eachSystem calls test for the databases that there are here, at each isolation level.
func eachSystem(t *testing.T, test func(t *testing.T, s system)) {
	t.Helper()
	t.Run("PostgreSQL", func(t *testing.T) {
		server := databases.StartPostgreSQL(t)
		for name, level := range levels {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, system{name, sqllock.Postgres, level, on(server)})
			})
		}
	})
	t.Run("MariaDB", func(t *testing.T) {
		server := databases.StartMariaDB(t)
		for name, level := range levels {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, system{name, sqllock.MySQL, level, on(server.Server)})
			})
		}
	})
	t.Run("SQLite", func(t *testing.T) {
		test(t, onSQLite)
	})
}

var onSQLite = system{"SQLite", sqllock.SQLite, sql.LevelDefault, func(t testing.TB) (driver, dsn string) {
	return "sqlite", databases.SQLite(t)
}}

func openSQLite(t testing.TB) *sql.DB {
	t.Helper()
	return onSQLite.open(t)
}

// bank is a database with accounts and a store.
type bank struct {
	*sqllock.Store
	t  testing.TB
	db *sql.DB
}

func (s system) bank(t testing.TB, opts ...sqllock.Option) *bank {
	t.Helper()
	return newBank(t, s.open(t), s.dialect, append([]sqllock.Option{sqllock.WithTxOptions(sql.TxOptions{Isolation: s.level})}, opts...)...)
}

func newBank(t testing.TB, db *sql.DB, dialect sqllock.Dialect, opts ...sqllock.Option) *bank {
	t.Helper()
	store, err := sqllock.New(db, dialect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &bank{store, t, db}
	engine := ""
	if dialect == sqllock.MySQL {
		engine = " ENGINE = InnoDB"
	}
	b.exec("CREATE TABLE debit (payment VARCHAR(64) NOT NULL, n INTEGER NOT NULL)" + engine)
	return b
}

func (b *bank) exec(statement string) {
	b.t.Helper()
	if _, err := b.db.ExecContext(context.Background(), statement); err != nil {
		b.t.Fatal(err)
	}
}

// debits counts the debits of all payments.
func (b *bank) debits() (n int) {
	b.t.Helper()
	if err := b.db.QueryRow("SELECT count(*) FROM debit").Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// debit is the effect.
func debit(ctx context.Context, tx *sql.Tx) ([]byte, error) {
	_, err := tx.ExecContext(ctx, "INSERT INTO debit (payment, n) VALUES ('42', 1)")
	return []byte("paid"), err
}

// pays makes the run of a Once that debits.
func (b *bank) pays() func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) { return b.InTx(ctx, debit) }
}

func start(t *testing.T) (*testkit.Server, *core.Client) {
	t.Helper()
	server := testkit.Start(t)
	return server, coretest.NewClient(t, server.Client())
}

func wantErr(t *testing.T, err, target error, parts ...string) {
	t.Helper()
	if !errors.Is(err, target) || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
		t.Errorf("error %v, want %v with %q", err, target, parts)
	}
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
		t.Errorf("error %v, want %q", err, parts)
	}
}

const within = time.Minute
