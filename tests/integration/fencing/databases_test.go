//go:build unix

package fencing_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
)

// newDatabases returns a function that creates a database and connects to it until its test ends.
func newDatabases(admin *sql.DB) func(t *testing.T, connect func(name string) *sql.DB) *sql.DB {
	var created atomic.Int64
	return func(t *testing.T, connect func(string) *sql.DB) *sql.DB {
		t.Helper()
		name := fmt.Sprintf("test%d", created.Add(1))
		if _, err := admin.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		db := connect(name)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
}

// logVersion logs which server the tests run on.
func logVersion(t *testing.T, db *sql.DB) {
	t.Helper()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Log(version)
}
