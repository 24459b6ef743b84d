package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// Option configures a [Store].
type Option func(*Store)

// WithTables sets the names of the tables: of proofs and of fences. Letters, digits and underscores are allowed.
// Defaults to holdfast_proof and holdfast_fence.
func WithTables(proofs, fences string) Option {
	return func(s *Store) { s.proofs, s.fences = proofs, fences }
}

// WithSchema sets the schema of the tables; for MySQL that is the database. Defaults to the connection's schema.
func WithSchema(schema string) Option {
	return func(s *Store) { s.schema = &schema }
}

// WithScope adds a column to both tables, and takes its value from the context of a run, or of the request for one: for instance
// the tenant. Keys and resources of different scopes have different rows. The database can restrict the rows by that column, and
// you can delete the rows of one tenant. A context without a scope, for which the function returns "", is an error. A scope is UTF-8 and
// has at most 255 bytes. Defaults to none.
func WithScope(column string, of func(ctx context.Context) string) Option {
	return func(s *Store) { s.scopeColumn, s.scopeOf, s.scoped = column, of, true }
}

// WithTxOptions sets the isolation level of the transactions of InTx. Defaults to the database's isolation level.
func WithTxOptions(options sql.TxOptions) Option {
	return func(s *Store) { s.tx = options }
}

// OnlyEffect declares that the transaction of InTx is all that a run does. Then a run without a row has done nothing, and the next
// one may follow also with [core.HoldFailures]: no outcome is unknown. Do not use it if a run also calls a payment service, or
// sends a message itself. Defaults to off: the transaction may be one of several effects.
func OnlyEffect() Option {
	return func(s *Store) { s.only = true }
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: sqllock: %s", core.ErrInvalidOption, fmt.Sprintf(format, args...))
}

// check finds what is wrong with the options.
func (s *Store) check() error {
	names := []string{s.proofs, s.fences}
	if s.schema != nil {
		names = append(names, *s.schema)
	}
	if s.scoped {
		names = append(names, s.scopeColumn)
	}
	for _, name := range names {
		if !identifier.MatchString(name) {
			return invalid("%q is not allowed as the name of a table, a schema or a column: a letter, and letters, digits and "+
				"underscores after it, at most 63 in all", name)
		}
	}
	switch {
	case s.db == nil:
		return invalid("New: the database is nil")
	case s.dialect < Postgres || s.dialect > SQLite:
		return invalid("New: the dialect is %v: pass Postgres, MySQL or SQLite", s.dialect)
	case s.proofs == s.fences:
		return invalid("WithTables: both have the name %q", s.proofs)
	case s.tx.ReadOnly:
		return invalid("WithTxOptions: a transaction that is read-only cannot write its proof")
	case s.scoped && s.scopeOf == nil:
		return invalid("WithScope: the function is nil")
	case s.scoped && slices.Contains(columns, strings.ToLower(s.scopeColumn)):
		return invalid("WithScope: %q is a column of the tables already", s.scopeColumn)
	}
	return nil
}
