//go:build unix

package fencing_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/tests/sql/databases"
)

// TestMariaDB plays on the statements of the section on MySQL.
func TestMariaDB(t *testing.T) {
	t.Parallel()
	open := databases.StartMariaDB(t).OpenWith
	blocks := sqlBlocks(t, "MySQL")
	existing := existingRow(blocks[0], "START TRANSACTION", func(token, value int64) []any {
		return []any{value, token, "alice", token}
	})
	several := severalRows(t, blocks[1], func(token, _ int64) []any { return []any{token, token} })
	found := func(t *testing.T) *sql.DB {
		t.Helper()
		return open(t, func(c *mysql.Config) { c.ClientFoundRows = true })
	}
	system{
		open: found,
		waiting: "SELECT count(*) FROM information_schema.processlist " + // innodb_trx is a copy that lags behind
			"WHERE db = database() AND state IN ('Update', 'Updating')",
		resources: []resource{existing, several},
	}.play(t)
	t.Run("no such row", func(t *testing.T) {
		t.Parallel()
		noSuchRow(t, found(t), existing)
	})
	t.Run("REPEATABLE READ", func(t *testing.T) {
		t.Parallel()
		repeatableRead(t, found(t), several)
	})
	t.Run("snapshot isolation", func(t *testing.T) {
		t.Parallel()
		snapshotIsolation(t, open(t, func(c *mysql.Config) {
			c.ClientFoundRows, c.Params = true, map[string]string{"innodb_snapshot_isolation": "ON"}
		}), several)
	})
	t.Run("without clientFoundRows", func(t *testing.T) {
		t.Parallel()
		countingChanges(t, open(t, func(*mysql.Config) {}), existing)
	})
}

// repeatableRead: a transaction that has read before the write of a later holder still compares with the token that
// is stored now.
func repeatableRead(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	r.create(t, db)
	prepareRow(t, db, r)
	s := &stage{db: db, resource: r}
	accepted, err := s.isolated(t, t.Context(), r.begin)
	if accepted || err != nil {
		t.Errorf("a late write got %v, %v, expected a refusal", accepted, err)
	}
}

// snapshotIsolation: with the default of newer MariaDB, such a transaction fails with error 1020.
func snapshotIsolation(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	r.create(t, db)
	prepareRow(t, db, r)
	s := &stage{db: db, resource: r}
	_, err := s.isolated(t, t.Context(), r.begin)
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) || refused.Number != 1020 {
		t.Errorf("the check returned %v, expected error 1020", err)
	}
	s.mustWrite(t, connect(t, db), 33, 33, false)
}

// prepareRow inserts the row of the lock.
func prepareRow(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	for _, s := range r.prepare {
		if _, err := s.exec(t.Context(), connect(t, db), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// countingChanges: without clientFoundRows a repeated write looks refused, as the page warns.
func countingChanges(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	r.create(t, db)
	s, conn := &stage{db: db, resource: r}, connect(t, db)
	s.mustWrite(t, conn, 33, 100, true)
	s.mustWrite(t, conn, 33, 100, false)
}
