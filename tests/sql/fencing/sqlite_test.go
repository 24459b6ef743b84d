package fencing_test

import (
	"database/sql"
	"errors"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-go/holdfast/tests/sql/databases"
)

// TestSQLite plays on the statements of the section on SQLite, and on the statements for PostgreSQL that work there too.
func TestSQLite(t *testing.T) {
	t.Parallel()
	own, shared := sqlBlocks(t, "SQLite")[0], sqlBlocks(t, "PostgreSQL")
	report := newRow(own[0], own[1], "BEGIN IMMEDIATE")
	update := report
	update.name, update.check.sql = "a row that exists by then", own[2]
	update.setup = append(update.setup, "INSERT INTO report (day, body, fence) VALUES ('2026-11-22', '0', 0)")
	several := severalRows(t, shared[2], func(token, _ int64) []any { return []any{token} })
	several.begin = "BEGIN IMMEDIATE" // as the page says
	system{open: openSQLite, resources: []resource{
		report, update, several,
		existingRow(shared[0], "BEGIN IMMEDIATE", func(token, value int64) []any { return []any{value, token, "alice"} }),
	}}.play(t)
	t.Run("BEGIN", func(t *testing.T) {
		t.Parallel()
		deferredTransaction(t, openSQLite(t), several)
	})
}

// deferredTransaction: a transaction that begins with BEGIN and has read fails at its first write, if another
// connection has written since.
func deferredTransaction(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	r.create(t, db)
	s := &stage{db: db, resource: r}
	_, err := s.isolated(t, t.Context(), "BEGIN")
	var refused *sqlite.Error
	if !errors.As(err, &refused) || refused.Code() != sqlite3.SQLITE_BUSY_SNAPSHOT {
		t.Errorf("the check returned %v, expected SQLITE_BUSY_SNAPSHOT", err)
	}
	s.mustWrite(t, connect(t, db), 33, 33, false)
}

func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", databases.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT sqlite_version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Log("SQLite", version)
	return db
}
