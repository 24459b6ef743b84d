//go:build unix

package fencing_test

import (
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// TestPostgreSQL plays on the statements of the section on PostgreSQL.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	server := databases.StartPostgreSQL(t)
	open := func(t *testing.T) *sql.DB { return server.Open(t) }
	blocks := sqlBlocks(t, "PostgreSQL")
	existing := existingRow(blocks[0], "BEGIN", func(token, value int64) []any { return []any{value, token, "alice"} })
	several := severalRows(t, blocks[2], func(token, _ int64) []any { return []any{token} })
	system{
		open:    open,
		waiting: "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())",
		resources: []resource{
			existing,
			newRow("CREATE TABLE report (day date PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL)", blocks[1][0], "BEGIN"),
			several,
			stock(t),
		},
	}.play(t)
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			stricterIsolation(t, open(t), several, level)
		})
	}
	t.Run("no such row", func(t *testing.T) {
		t.Parallel()
		noSuchRow(t, open(t), existing)
	})
	t.Run("without a lock", func(t *testing.T) {
		t.Parallel()
		lastItem(t, open(t))
	})
}

// stock is the row that the statement of docs/guarantees.md changes.
func stock(t *testing.T) resource {
	t.Helper()
	page, err := markdown.Read(root, "docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := statementsOf(page.Section("Tokens"))
	if len(blocks) != 1 || len(blocks[0]) != 1 {
		t.Fatalf("docs/guarantees.md has the statements %q, expected one", blocks)
	}
	return resource{
		name: "the stock",
		setup: []string{
			"CREATE TABLE stock (item text PRIMARY KEY, quantity bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)",
			"INSERT INTO stock (item, quantity) VALUES ('voucher', 0)",
		},
		begin: "BEGIN",
		check: statement{blocks[0][0], func(token, value int64) []any { return []any{value, token, "voucher"} }},
		state: "SELECT quantity, fence FROM stock",
	}
}

// lastItem: the statement with which docs/choosing.md sells without a lock does not sell more than there is.
func lastItem(t *testing.T, db *sql.DB) {
	t.Helper()
	page, err := markdown.Read(root, "docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	update := regexp.MustCompile("`(UPDATE stock [^`]+)`").FindStringSubmatch(strings.Join(page.Lines, "\n"))
	if update == nil {
		t.Fatal("docs/choosing.md has no UPDATE of a stock")
	}
	stock(t).create(t, db)
	if _, err := db.ExecContext(t.Context(), "UPDATE stock SET quantity = 1"); err != nil {
		t.Fatal(err)
	}
	sell := statement{update[1], func(int64, int64) []any { return []any{"voucher"} }}
	for _, want := range []int64{1, 0} {
		if rows, err := sell.exec(t.Context(), connect(t, db), 0, 0); rows != want || err != nil {
			t.Errorf("sold %d, %v, expected %d", rows, err, want)
		}
	}
}

// stricterIsolation: the check of a transaction that has read before the write of a later holder fails with SQLSTATE
// 40001. The same token is refused when the transaction is tried again.
func stricterIsolation(t *testing.T, db *sql.DB, r resource, level string) {
	t.Helper()
	r.create(t, db)
	s := &stage{db: db, resource: r}
	_, err := s.isolated(t, t.Context(), "BEGIN ISOLATION LEVEL "+level)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "40001" {
		t.Errorf("the check returned %v, expected SQLSTATE 40001", err)
	}
	s.mustWrite(t, connect(t, db), 33, 33, false)
}

// noSuchRow: an UPDATE of a row that does not exist affects no row.
func noSuchRow(t *testing.T, db *sql.DB, r resource) {
	t.Helper()
	r.create(t, db)
	if _, err := db.ExecContext(t.Context(), "DELETE FROM account"); err != nil {
		t.Fatal(err)
	}
	(&stage{db: db, resource: r}).mustWrite(t, connect(t, db), 33, 100, false)
}
