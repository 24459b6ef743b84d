//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/sqllock"
)

// TestCreateTablesWhileBusy: another process is writing for longer than the busy_timeout. CreateTables tries again until its context
// ends.
func TestCreateTablesWhileBusy(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(1)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqllock.New(db, sqllock.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := store.CreateTables(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("beside the writer: %v", err)
	}
	made := make(chan error, 1)
	go func() { made <- store.CreateTables(t.Context()) }()
	if _, err := writer.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
}
