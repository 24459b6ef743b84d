package fencing_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A statement is SQL with the arguments that a write gives it.
type statement struct {
	sql  string
	args func(token, value int64) []any // nil if the statement has no parameters
}

func (s statement) exec(ctx context.Context, conn *sql.Conn, token, value int64) (rows int64, err error) {
	var args []any
	if s.args != nil {
		args = s.args(token, value)
	}
	result, err := conn.ExecContext(ctx, s.sql, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.sql, err)
	}
	return result.RowsAffected()
}

// A resource is what a token guards.
type resource struct {
	name    string
	setup   []string    // makes the tables, and the rows that must exist
	prepare []statement // what each write runs before its transaction
	begin   string      // begins a transaction, also one around a check alone
	before  []statement // what precedes the check in its transaction
	check   statement   // compares and stores the token; 0 affected rows mean that the write is refused
	then    []statement // what follows in the transaction of the check; nil if the check is the whole write
	state   string      // a query of one row: the content, and the token stored
	counts  bool        // whether the content is the number of accepted writes instead of the last value written
}

// write runs one write as the page does it, and reports whether the resource accepted it.
func (r resource) write(ctx context.Context, conn *sql.Conn, token, value int64) (accepted bool, err error) {
	if r.then == nil {
		rows, err := r.check.exec(ctx, conn, token, value)
		return rows > 0, err
	}
	accepted, err = r.open(ctx, conn, token, value)
	end := "COMMIT"
	if !accepted {
		end = "ROLLBACK"
	}
	if _, endErr := conn.ExecContext(ctx, end); err == nil {
		err = endErr
	}
	return accepted, err
}

// open runs a write in a transaction, and leaves the transaction open.
func (r resource) open(ctx context.Context, conn *sql.Conn, token, value int64) (accepted bool, err error) {
	if err := execAll(ctx, conn, r.prepare); err != nil {
		return false, err
	}
	if _, err := conn.ExecContext(ctx, r.begin); err != nil {
		return false, err
	}
	if err := execAll(ctx, conn, r.before); err != nil {
		return false, err
	}
	rows, err := r.check.exec(ctx, conn, token, value)
	if err != nil || rows == 0 {
		return false, err
	}
	return true, execAll(ctx, conn, r.then)
}

// execAll runs statements that have no parameters.
func execAll(ctx context.Context, conn *sql.Conn, all []statement) error {
	for _, s := range all {
		if _, err := s.exec(ctx, conn, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// create makes the tables of the resource.
func (r resource) create(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, s := range r.setup {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// expect compares the stored token and the content with those that the accepted writes must have left.
func (r resource) expect(t *testing.T, db *sql.DB, token int64, accepted []int64) {
	t.Helper()
	want := strconv.Itoa(len(accepted))
	if !r.counts {
		want = strconv.FormatInt(accepted[len(accepted)-1], 10)
	}
	var content string
	var stored int64
	if err := db.QueryRowContext(t.Context(), r.state).Scan(&content, &stored); err != nil {
		t.Fatalf("%s: %v", r.state, err)
	}
	if stored != token || content != want {
		t.Errorf("the resource holds %s under token %d, expected %s under %d", content, stored, want, token)
	}
}

// renamed returns the resource under the lock of another name. It shares the tables.
func (r resource) renamed(name string) resource {
	rename := func(s statement) statement {
		s.sql = strings.ReplaceAll(s.sql, "'order:42'", "'"+name+"'")
		return s
	}
	all := func(before []statement) (after []statement) {
		for _, s := range before {
			after = append(after, rename(s))
		}
		return after
	}
	r.prepare, r.before, r.check = all(r.prepare), all(r.before), rename(r.check)
	r.state = rename(statement{sql: r.state}).sql
	return r
}

// existingRow is the row of a table account, changed by an UPDATE.
func existingRow(block []string, begin string, args func(token, value int64) []any) resource {
	return resource{
		name: "an existing row",
		setup: []string{
			"CREATE TABLE account (id VARCHAR(40) PRIMARY KEY, balance BIGINT NOT NULL)",
			"INSERT INTO account (id, balance) VALUES ('alice', 0)",
			block[0],
		},
		begin: begin,
		check: statement{block[1], args},
		state: "SELECT balance, fence FROM account WHERE id = 'alice'",
	}
}

// newRow is the row of a table report, which the first write inserts.
func newRow(table, upsert, begin string) resource {
	return resource{
		name:  "a row that may not exist",
		setup: []string{table},
		begin: begin,
		check: statement{upsert, dayBodyToken},
		state: "SELECT body, fence FROM report WHERE day = '2026-11-22'",
	}
}

func dayBodyToken(token, value int64) []any {
	return []any{"2026-11-22", strconv.FormatInt(value, 10), token}
}

// severalRows are the tables orders and ledger, guarded by one row of lock_fence. The block is the page's: it
// creates lock_fence, may prepare the row, and has a transaction. The check is the statement with parameters.
func severalRows(t *testing.T, block []string, args func(token, value int64) []any) resource {
	t.Helper()
	begin := slices.IndexFunc(block, func(s string) bool { return s == "BEGIN" || s == "START TRANSACTION" })
	check := slices.IndexFunc(block, func(s string) bool { return strings.ContainsAny(s, "?$") })
	if begin < 1 || check < begin || block[len(block)-1] != "COMMIT" {
		t.Fatalf("no transaction with a check in %q", block)
	}
	return resource{
		name: "several rows under one lock",
		setup: []string{
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, state VARCHAR(10) NOT NULL)",
			"INSERT INTO orders (id, state) VALUES (42, 'new')",
			"CREATE TABLE ledger (order_id BIGINT NOT NULL, amount BIGINT NOT NULL)",
			block[0],
		},
		prepare: plain(block[1:begin]),
		begin:   block[begin],
		before:  plain(block[begin+1 : check]),
		check:   statement{block[check], args},
		then:    plain(block[check+1 : len(block)-1]),
		state:   "SELECT (SELECT count(*) FROM ledger), token FROM lock_fence WHERE name = 'order:42'",
		counts:  true,
	}
}

// plain makes statements without parameters.
func plain(block []string) (found []statement) {
	for _, s := range block {
		found = append(found, statement{sql: s})
	}
	return found
}
