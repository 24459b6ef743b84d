package sqllock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// Store keeps proofs and fences in a database. Make it with [New], once for each database. It is safe for concurrent use. It is a
// [core.Proof].
type Store struct {
	db             *sql.DB
	dialect        Dialect
	tx             sql.TxOptions
	proofs, fences string
	schema         *string // nil for the connection's
	scopeColumn    string
	scoped         bool
	scopeOf        func(context.Context) string
	only           bool

	insert, read, readLocked, write, remove, removeOne, fence string // statements

	retention atomic.Int64                // the longest one of records with a proof, in this process
	logger    atomic.Pointer[slog.Logger] // of their clients
	warnings  throttle.Throttle
}

var _ core.Proof = (*Store)(nil)

// columns are the columns of both tables.
var columns = []string{"id", "name", "run", "attempt", "token", "fingerprint", "value", "created", "resource"}

// defaultRetention is core's.
const defaultRetention = 24 * time.Hour

// maxScope and maxResource bound what is a part of a primary key, in bytes.
const maxScope, maxResource = 255, 512

// New returns the store of a database. It makes no tables: see [Store.CreateTables] and [Store.Schema]. Only with [SQLite] it asks
// the database: without a busy_timeout, which the driver sets for each connection, concurrent transactions fail at once.
func New(db *sql.DB, dialect Dialect, opts ...Option) (*Store, error) {
	s := &Store{db: db, dialect: dialect, proofs: "holdfast_proof", fences: "holdfast_fence"}
	for _, o := range opts {
		if o != nil {
			o(s)
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if dialect == SQLite {
		var wait int
		if err := db.QueryRow("PRAGMA busy_timeout").Scan(&wait); err != nil {
			return nil, fmt.Errorf("holdfast: sqllock: busy_timeout of SQLite: %w", err)
		}
		if wait == 0 {
			return nil, invalid("New: SQLite has no busy_timeout: add _pragma=busy_timeout(10000) to the name of the database with " +
				"modernc.org/sqlite, or _busy_timeout=10000 with mattn/go-sqlite3")
		}
	}
	s.prepare()
	return s, nil
}

// table returns the quoted name of a table.
func (s *Store) table(name string) string {
	if s.schema == nil {
		return s.dialect.quote(name)
	}
	return s.dialect.quote(*s.schema) + "." + s.dialect.quote(name)
}

// prepare makes the statements.
func (s *Store) prepare() {
	d, proofs, fences := s.dialect, s.table(s.proofs), s.table(s.fences)
	column, place, where, conflict := "", "", "", "resource"
	if s.scoped {
		scope := d.quote(s.scopeColumn)
		column, place, where, conflict = ", "+scope, ", ?", " AND "+scope+" = ?", "resource, "+scope
	}
	s.insert = "INSERT INTO " + proofs + " (id, name, run, attempt, token, fingerprint, value, created" + column +
		") VALUES (?, ?, ?, ?, ?, ?, ?, ?" + place + ")"
	s.read = "SELECT run, value, value IS NULL, fingerprint, attempt, token, created FROM " + proofs + " WHERE id = ?" + where
	s.readLocked = s.read
	s.removeOne = "DELETE FROM " + proofs + " WHERE id = ?" + where
	s.write = "UPDATE " + proofs + " SET value = ? WHERE id = ? AND run = ?" + where
	s.fence = "INSERT INTO " + fences + " (resource, token" + column + ") VALUES (?, ?" + place + ")"
	const old = "created < ? ORDER BY created LIMIT ?"
	s.remove = "DELETE FROM " + proofs + " WHERE id IN (SELECT id FROM " + proofs + " WHERE " + old + ")"
	if d == Postgres { // a setting that lasts as long as the transaction
		s.insert = strings.Replace(s.insert, "(?, ?, ?", "(?, ?, decode(set_config('holdfast.run', encode(?, 'hex'), true), 'hex')", 1)
		s.write += " AND encode(run, 'hex') = current_setting('holdfast.run', true)"
	}
	if d == MySQL {
		s.readLocked += " LOCK IN SHARE MODE" // what is committed now, and not when the transaction began to read
		s.fence += " ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token, VALUES(token)))"
		s.remove = "DELETE FROM " + proofs + " WHERE " + old
	} else {
		s.insert += " ON CONFLICT DO NOTHING"
		s.fence += " ON CONFLICT (" + conflict + ") DO UPDATE SET token = excluded.token WHERE " + fences + ".token <= excluded.token"
	}
	for _, statement := range []*string{&s.insert, &s.read, &s.readLocked, &s.write, &s.remove, &s.removeOne, &s.fence} {
		*statement = d.bind(*statement)
	}
}

// Schema returns the statements that make the tables, for a migration of your own. Each ends with a semicolon and a new line.
func (s *Store) Schema() string { return strings.Join(s.ddl(), ";\n") + ";\n" }

func (s *Store) ddl() []string {
	d, proofs, fences := s.dialect, s.table(s.proofs), s.table(s.fences)
	scope, key, engine := "", "resource", ""
	if s.scoped {
		scope = "\n  " + d.quote(s.scopeColumn) + " TEXT NOT NULL,"
		key += ", " + d.quote(s.scopeColumn)
	}
	index := d.quote(s.proofs + "_created")
	created, inline := "CREATE INDEX IF NOT EXISTS "+index+" ON "+proofs+" (created)", ""
	switch {
	case d == MySQL: // which has no IF NOT EXISTS for an index, and no TEXT in one
		scope = strings.Replace(scope, "TEXT", fmt.Sprintf("VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", maxScope), 1)
		created, inline, engine = "", ",\n  KEY "+index+" (created)", " ENGINE = InnoDB"
	case d == SQLite && s.schema != nil:
		created = "CREATE INDEX IF NOT EXISTS " + s.table(s.proofs+"_created") + " ON " + d.quote(s.proofs) + " (created)"
	}
	proof := "CREATE TABLE IF NOT EXISTS " + proofs + " (\n  id " + d.bytes(sha256.Size) + " NOT NULL PRIMARY KEY," + scope +
		"\n  name " + d.bytes(2*maxResource) + " NOT NULL,\n  run " + d.bytes(runSize) + " NOT NULL,\n  attempt BIGINT NOT NULL," +
		"\n  token BIGINT NOT NULL,\n  fingerprint " + d.bytes(maxScope+1) + ",\n  value " + d.bytes(0) + ",\n  created BIGINT NOT NULL" +
		inline + "\n)" + engine
	fence := "CREATE TABLE IF NOT EXISTS " + fences + " (\n  resource " + d.bytes(maxResource) + " NOT NULL," + scope +
		"\n  token BIGINT NOT NULL,\n  PRIMARY KEY (" + key + ")\n)" + engine
	if created == "" {
		return []string{proof, fence}
	}
	return []string{proof, created, fence} // the last one says that all are there
}

// CreateTables makes the tables unless they exist. The user of the database needs the right for it only if they do not. Conflicts with
// other transactions are tried again until ctx ends.
func (s *Store) CreateTables(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, "SELECT 1 FROM "+s.table(s.proofs)+", "+s.table(s.fences)+" WHERE 1 = 0"); err == nil {
		return nil
	}
	for _, statement := range s.ddl() {
		_, err := s.db.ExecContext(ctx, statement)
		// PostgreSQL fails if another process has made the table at the same time, SQLite while one writes.
		for first := true; err != nil && (first || s.dialect.passes(err)) && pause(ctx); first = false {
			_, err = s.db.ExecContext(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("holdfast: sqllock: tables not made in %v: %w", s.dialect, err)
		}
	}
	return nil
}

// OnlyEffect implements [core.Proof], see the function OnlyEffect.
func (s *Store) OnlyEffect() bool { return s.only }

// Committed implements [core.Proof]: it returns what a run has committed for a key, and nil if none has. The key is the
// ProofKey of the [core.Record] that Peek of the Once or of its guard returns: it has the prefix of the client in
// front. A run that is about to commit is not seen, so nil does not mean that none will.
func (s *Store) Committed(ctx context.Context, key string) (*core.Committed, error) {
	scope, err := s.keyed(ctx, key)
	if err != nil {
		return nil, err
	}
	found, _, err := s.find(ctx, s.db.QueryRowContext, s.read, idOf(scope, key), scope)
	return found, err
}

// Delete deletes the proof of a key, as Committed takes it, and returns false if there was none. An operator calls it
// before Forget, if the key is to run again.
func (s *Store) Delete(ctx context.Context, key string) (bool, error) {
	scope, err := s.keyed(ctx, key)
	if err != nil {
		return false, err
	}
	result, err := s.db.ExecContext(ctx, s.removeOne, append([]any{idOf(scope, key)}, scope...)...)
	if err != nil {
		return false, fmt.Errorf("holdfast: sqllock: proof not deleted from %s: %w", s.table(s.proofs), err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Resolve implements [core.Proof]: it inserts the row of a key that an operator has resolved. It waits for the end of a transaction of
// the key. Once.Resolve and Resolve of guards call it.
func (s *Store) Resolve(ctx context.Context, key string, found core.Committed) error {
	scope, err := s.keyed(ctx, key)
	if err != nil {
		return err
	}
	_, err = s.run(&seal.Proving{
		Key: key, Fingerprint: found.Fingerprint, Attempt: found.Attempt, Token: found.Token, MaxValue: len(found.Value),
		Complete: func(context.Context, any) error { return core.ErrCompleted },
	}, scope).inTx(ctx, func(context.Context, *sql.Tx) ([]byte, error) { return found.Value, nil })
	return err
}

// keyed returns the scope of a context in which a key is read.
func (s *Store) keyed(ctx context.Context, key string) ([]any, error) {
	if key == "" {
		return nil, fmt.Errorf("%w: sqllock: the key is empty: pass the ProofKey of the record that Peek returns",
			core.ErrInvalidName)
	}
	return s.scope(ctx)
}

// find returns the row with an ID, nil if there is none, and which run has inserted it. It asks the database, or a transaction in it.
func (s *Store) find(
	ctx context.Context, ask func(context.Context, string, ...any) *sql.Row, statement string, id []byte, scope []any,
) (found *core.Committed, run []byte, err error) {
	c, created, unfinished := new(core.Committed), int64(0), false
	err = ask(ctx, statement, append([]any{id}, scope...)...).
		Scan(&run, &c.Value, &unfinished, &c.Fingerprint, &c.Attempt, &c.Token, &created)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("holdfast: sqllock: proof not read from %s in %v: %w", s.table(s.proofs), s.dialect, err)
	}
	if unfinished {
		return nil, run, errUnfinished
	}
	c.At = time.UnixMilli(created)
	return c, run, nil
}

// scope returns the scope of a context as the last argument of statements, and no argument if the tables have none.
func (s *Store) scope(ctx context.Context) ([]any, error) {
	if !s.scoped {
		return nil, nil
	}
	switch scope := s.scopeOf(ctx); {
	case scope == "":
		return nil, errors.New("holdfast: sqllock: WithScope: the context has no scope")
	case len(scope) > maxScope || !utf8.ValidString(scope) || strings.Contains(scope, "\x00"):
		return nil, fmt.Errorf("holdfast: sqllock: WithScope: the scope of %d bytes is not allowed: UTF-8 without NUL, at most %d bytes",
			len(scope), maxScope)
	default:
		return []any{scope}, nil
	}
}

// idOf returns the primary key of a proof.
func idOf(scope []any, key string) []byte {
	h := sha256.New()
	for _, part := range append(scope, key) {
		text := part.(string)
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
		h.Write([]byte(text))
	}
	return h.Sum(nil)
}

// DeleteBefore deletes up to limit of the proofs that were made before a time, the oldest first, and returns how many.
// Call it until it returns fewer. A key whose proof is deleted may run again once Redis has no record of it either:
// keep proofs for longer than records, see [core.WithRetention], and for longer than clients retry. The log warns of a
// time that is too late for the records of this process, or for their default retention if it has run no Once: once,
// and then at most every minute.
func (s *Store) DeleteBefore(ctx context.Context, t time.Time, limit int) (int64, error) {
	if limit < 1 {
		return 0, invalid("DeleteBefore: the limit is %d", limit)
	}
	if kept, retention := time.Since(t), cmp.Or(time.Duration(s.retention.Load()), defaultRetention); kept < retention {
		if seen, _ := s.warnings.Event("younger"); seen > 0 {
			cmp.Or(s.logger.Load(), slog.Default()).WarnContext(ctx, "holdfast: sqllock: proofs are deleted that are younger than the "+
				"retention of their records", "kept", kept.Round(time.Second), "retention", retention)
		}
	}
	result, err := s.db.ExecContext(ctx, s.remove, t.UnixMilli(), limit)
	if err != nil {
		return 0, fmt.Errorf("holdfast: sqllock: proofs not deleted from %s: %w", s.table(s.proofs), err)
	}
	return result.RowsAffected()
}
