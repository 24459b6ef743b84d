package fencing_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A system is a database system under test.
type system struct {
	open      func(t *testing.T) *sql.DB // a new and empty database
	waiting   string                     // a query that counts statements waiting for a lock in this database; "" if the system has none
	resources []resource
}

// play runs all plays on all resources, each in a database of its own.
func (s system) play(t *testing.T) {
	t.Helper()
	plays := []struct {
		name string
		play func(*testing.T, *stage)
	}{
		{"tokens in turn", tokensInTurn},
		{"a late write meets an open transaction", lateMeetsOpen},
		{"a later write meets an open transaction", laterMeetsOpen},
		{"concurrent writers", concurrentWriters},
		{"two names", twoNames},
	}
	for _, r := range s.resources {
		for _, p := range plays {
			t.Run(r.name+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				db := s.open(t)
				r.create(t, db)
				p.play(t, &stage{db: db, resource: r, waiting: s.waiting})
			})
		}
	}
}

// A stage is one resource in a database of its own.
type stage struct {
	db *sql.DB
	resource
	waiting string
}

// connect returns a connection that lives until the test ends.
func connect(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// mustWrite writes, and compares whether the resource accepted that.
func (s *stage) mustWrite(t *testing.T, conn *sql.Conn, token, value int64, want bool) {
	t.Helper()
	accepted, err := s.write(t.Context(), conn, token, value)
	if err != nil {
		t.Fatalf("token %d: %v", token, err)
	}
	if accepted != want {
		t.Errorf("token %d: accepted is %v, expected %v", token, accepted, want)
	}
}

// tokensInTurn: the resource accepts the first token, the same token again and a greater one, and refuses a smaller one.
func tokensInTurn(t *testing.T, s *stage) {
	const now = 1_800_000_000_000_000 // the size of a real token, in microseconds
	a, b := connect(t, s.db), connect(t, s.db)
	var accepted []int64
	var greatest int64
	for _, w := range []struct {
		conn         *sql.Conn
		token, value int64
		want         bool
	}{
		{a, 33, 100, true},
		{a, 33, 100, true}, // the same write again
		{a, 33, 101, true}, // another write of the same holder
		{b, 34, 102, true},
		{a, 33, 103, false}, // late
		{b, 34, 104, true},
		{a, now, 105, true},
		{b, now + 1, 106, true},
		{a, now, 107, false},
	} {
		s.mustWrite(t, w.conn, w.token, w.value, w.want)
		if w.want {
			accepted, greatest = append(accepted, w.value), w.token
		}
		s.expect(t, s.db, greatest, accepted)
	}
}

// lateMeetsOpen: a smaller token waits for the open transaction of a greater one, and is then refused.
func lateMeetsOpen(t *testing.T, s *stage) {
	s.meet(t, 34, 33, false)
	s.expect(t, s.db, 34, []int64{34})
}

// laterMeetsOpen: a greater token waits for the open transaction of a smaller one, and is then accepted.
func laterMeetsOpen(t *testing.T, s *stage) {
	s.meet(t, 33, 34, true)
	s.expect(t, s.db, 34, []int64{33, 34})
}

// meet writes under one token in a transaction, and under another one before that transaction commits.
func (s *stage) meet(t *testing.T, first, second int64, want bool) {
	t.Helper()
	a, b := connect(t, s.db), connect(t, s.db)
	if accepted, err := s.resource.open(t.Context(), a, first, first); !accepted || err != nil {
		t.Fatalf("token %d: %v, %v", first, accepted, err)
	}
	done := make(chan error, 1)
	var accepted bool
	go func() {
		var err error
		accepted, err = s.write(t.Context(), b, second, second)
		done <- err
	}()
	s.awaitWaiting(t, done)
	if _, err := a.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("token %d: %v", second, err)
	}
	if accepted != want {
		t.Errorf("token %d: accepted is %v, expected %v", second, accepted, want)
	}
}

// awaitWaiting returns when a statement waits for a lock. It returns at once if the system cannot tell.
func (s *stage) awaitWaiting(t *testing.T, done <-chan error) {
	t.Helper()
	if s.waiting == "" {
		return
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var n int
		if err := s.db.QueryRowContext(t.Context(), s.waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if len(done) > 0 || time.Now().After(deadline) {
			t.Fatal("the second write does not wait for the transaction of the first")
		}
	}
}

// concurrentWriters: callers draw tokens and write at the same time. No statement fails, and the greatest token is the
// last one accepted.
func concurrentWriters(t *testing.T, s *stage) {
	const callers, each = 4, 25
	var tokens atomic.Int64
	var mu sync.Mutex
	var accepted []int64
	caller := func(conn *sql.Conn) error {
		for range each {
			token := tokens.Add(1)
			ok, err := s.write(t.Context(), conn, token, token)
			if err != nil {
				return fmt.Errorf("token %d: %w", token, err)
			}
			if ok {
				mu.Lock()
				accepted = append(accepted, token)
				mu.Unlock()
			}
		}
		return nil
	}
	errs := make(chan error, callers)
	for range callers {
		conn := connect(t, s.db)
		go func() { errs <- caller(conn) }()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		return
	}
	slices.Sort(accepted)
	s.expect(t, s.db, callers*each, accepted)
}

// twoNames: the token of one lock does not refuse the writes under another one, however alike their names are.
func twoNames(t *testing.T, s *stage) {
	if !s.counts {
		t.Skip("this resource stores no name")
	}
	conn := connect(t, s.db)
	s.mustWrite(t, conn, 34, 0, true)
	for _, name := range []string{"order:43", "ORDER:42", "order:42 ", strings.Repeat("n", 512)} {
		other := stage{db: s.db, resource: s.renamed(name)}
		other.mustWrite(t, conn, 32, 0, true)
		other.mustWrite(t, conn, 33, 0, true)
		other.mustWrite(t, conn, 32, 0, false)
	}
	s.mustWrite(t, conn, 33, 0, false)
	s.expect(t, s.db, 34, make([]int64, 9))
}

// isolated begins a transaction on a connection, reads, lets another connection write under token 34, and returns what
// a write under token 33 then gets.
func (s *stage) isolated(t *testing.T, ctx context.Context, begin string) (accepted bool, err error) {
	t.Helper()
	a, b := connect(t, s.db), connect(t, s.db)
	s.mustWrite(t, b, 32, 32, true)
	if _, err := a.ExecContext(ctx, begin); err != nil {
		t.Fatal(err)
	}
	var content string
	var token int64
	if err := a.QueryRowContext(ctx, s.state).Scan(&content, &token); err != nil {
		t.Fatal(err)
	}
	s.mustWrite(t, b, 34, 34, true)
	rows, err := s.check.exec(ctx, a, 33, 33)
	if _, err := a.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	return rows > 0, err
}
