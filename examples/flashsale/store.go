package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// The tables of the database. No table has a constraint that would refuse what the guards are there to prevent, and
// nothing below adds to the stock within a transaction. A database can guard single tables like these by itself; the
// example stands for the many cases in which it cannot, because the work behind the decision is elsewhere: a payment,
// another service, a file.
const (
	quotesTable      = "quotes"
	stockTable       = "stock" // how many are left, by item
	ordersTable      = "orders"
	chargesTable     = "charges"
	settlementsTable = "settlements"
	receiptsTable    = "receipts"
	// fencesTable has the largest fencing token that ever wrote to a thing. Charges have no fence: a payment that is lost is
	// not followed by another, see locked.
	fencesTable = "fences"
)

// errStale refuses a write with a fencing token that is smaller than one seen before: its sender lost the lock,
// did not notice in time, and somebody else has written since.
var errStale = errors.New("stale write refused by the fence")

// store is one replica's handle on the database.
type store struct {
	db    *bolt.DB
	stale atomic.Int64 // writes refused
}

// createDatabase makes the database file with stock in it. All replicas share its handle, because bbolt opens a file once.
// Its transactions are real ones: one writes at a time, and all of it or nothing is written. A power failure may damage
// the file, which the sale removes at its end anyway.
func createDatabase(path, item string, left int) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		tables := []string{
			quotesTable, stockTable, ordersTable, chargesTable, settlementsTable, receiptsTable, fencesTable,
		}
		for _, table := range tables {
			if _, err := tx.CreateBucket([]byte(table)); err != nil {
				return err
			}
		}
		return set(tx, stockTable, item, left)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the database: %w", err), db.Close())
	}
	return db, nil
}

// read runs a transaction that only reads, unless ctx has ended.
func (s *store) read(ctx context.Context, do func(*bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.db.View(do)
}

// write runs a transaction that writes, unless ctx has ended, and counts those that a fence refuses.
func (s *store) write(ctx context.Context, do func(*bolt.Tx) error) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return do(tx)
	})
	if errors.Is(err, errStale) {
		s.stale.Add(1)
	}
	return err
}

// set writes the value of a key.
func set(tx *bolt.Tx, table, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.Bucket([]byte(table)).Put([]byte(key), text)
}

// get reads the value of a key. It leaves value alone if the table has no such key.
func get(tx *bolt.Tx, table, key string, value any) error {
	text := tx.Bucket([]byte(table)).Get([]byte(key))
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, value)
}

// insert adds a row behind those that begin with the same prefix. It returns the number of the row, which grows in the
// order in which the rows of a table are inserted.
func insert(tx *bolt.Tx, table, prefix string, row any) (number int64, err error) {
	next, err := tx.Bucket([]byte(table)).NextSequence()
	if err != nil {
		return 0, err
	}
	return int64(next), set(tx, table, rowKey(prefix, int64(next)), row)
}

// rowKey is the key of a row. In the order of keys, the rows of a prefix are sorted by their numbers.
func rowKey(prefix string, number int64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), uint64(number)))
}

// rows reads the rows of a table whose keys begin with prefix, in the order of keys. A row that cannot be read ends it
// with an error.
func rows[Row any](tx *bolt.Tx, table, prefix string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		cursor := tx.Bucket([]byte(table)).Cursor()
		for key, text := cursor.Seek([]byte(prefix)); key != nil && bytes.HasPrefix(key, []byte(prefix)); key, text = cursor.Next() {
			var row Row
			err := json.Unmarshal(text, &row)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// fence refuses to write to a thing under a smaller token than one that has written to it before.
func fence(tx *bolt.Tx, thing string, token int64) error {
	var largest int64
	if err := get(tx, fencesTable, thing, &largest); err != nil {
		return err
	}
	if token < largest {
		return errStale
	}
	return set(tx, fencesTable, thing, token)
}
