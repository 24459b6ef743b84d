package sqllock

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Dialect is the SQL of a database.
type Dialect int

const (
	// Postgres is PostgreSQL from version 9.6 on, and what speaks its dialect.
	Postgres Dialect = iota + 1
	// MySQL is MySQL from version 5.7 on, and MariaDB. Tables are InnoDB's.
	MySQL
	// SQLite is SQLite from version 3.24 on. It needs a busy_timeout.
	SQLite
)

// String returns the name of the database.
func (d Dialect) String() string {
	if d < Postgres || d > SQLite {
		return fmt.Sprintf("Dialect(%d)", int(d))
	}
	return [...]string{"PostgreSQL", "MySQL", "SQLite"}[d-Postgres]
}

// identifier is what all databases take in quotes. Other characters would need escapes, which differ.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// quote returns an identifier that was checked before.
func (d Dialect) quote(name string) string {
	if d == MySQL {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

// bind replaces each ? by the placeholder of the database.
func (d Dialect) bind(query string) string {
	if d != Postgres {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(parts, "")
}

// bytes returns the type of a column of bytes. MySQL can only index one with a length.
func (d Dialect) bytes(length int) string {
	switch {
	case d == Postgres:
		return "BYTEA"
	case d == SQLite:
		return "BLOB"
	case length > 0:
		return fmt.Sprintf("VARBINARY(%d)", length)
	}
	return "LONGBLOB"
}

// isDuplicate reports whether an insert was refused because there is a row with that primary key. The other dialects insert with ON
// CONFLICT DO NOTHING.
func (d Dialect) isDuplicate(err error) bool { return d == MySQL && numberOf(err) == 1062 }

// isEnded reports whether there is no savepoint: the transaction in which it was set is over.
func (d Dialect) isEnded(err error) bool {
	return d == MySQL && numberOf(err) == 1305 || d == SQLite && numberOf(err) == 1 // which is any error in a statement
}

// passes reports whether a statement has failed for a reason that passes: another transaction was in its way. The transaction of
// the statement has to be rolled back. MySQL keeps it open after some of these errors.
func (d Dialect) passes(err error) bool {
	switch d {
	case Postgres:
		var e interface{ SQLState() string } // of pgx and of lib/pq
		// Serialization failure, deadlock, lock timeout.
		return errors.As(err, &e) && slices.Contains([]string{"40001", "40P01", "55P03"}, e.SQLState())
	case MySQL:
		// Changed since it was read, lock wait timeout, deadlock.
		return slices.Contains([]int64{1020, 1205, 1213}, numberOf(err))
	}
	const busy, locked = 5, 6
	return slices.Contains([]int64{busy, locked}, numberOf(err)&0xff)
}

// numberOf returns the number of an error of MySQL or SQLite, 0 if there is none.
func numberOf(err error) int64 {
	var e interface{ Code() int } // of modernc.org/sqlite
	if errors.As(err, &e) {
		return int64(e.Code())
	}
	return cmp.Or(fieldOf(err, "Number"), fieldOf(err, "Code")) // of go-sql-driver/mysql, and of mattn/go-sqlite3
}

// fieldOf returns the integer that the error of a driver has in a field of that name, 0 if there is none. The drivers have no
// methods for it, and this package does not import them.
func fieldOf(err error, name string) int64 {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		switch f := v.FieldByName(name); {
		case f.IsValid() && f.CanInt():
			return f.Int()
		case f.IsValid() && f.CanUint():
			return int64(f.Uint())
		}
	}
	return 0
}
