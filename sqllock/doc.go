// Package sqllock commits the effect of a run in a SQL database together with the proof that it did: if the process ends before
// the effect is recorded in Redis, the next attempt reads the proof instead of running again.
//
//	store, err := sqllock.New(db, sqllock.Postgres)
//	once := locks.Once("payment:42", core.WithProof(store))
//	result, err := once.Do(ctx, func(ctx context.Context) ([]byte, error) {
//		return store.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
//			return debit(ctx, tx)
//		})
//	})
//
// [Store.InTx] begins a transaction, inserts a row for the key first, calls the function, stores its value in the row, and commits.
// The primary key of the row keeps a second transaction of the key from committing, whatever Redis has lost and however late a
// process wakes up. With [core.WithProof] the guard reads the row of a run that may not be the first, so its caller gets the value.
// It works the same behind the guards for HTTP, tasks and schedules: pass core.WithProof(store) to the guard, and call InTx in the
// handler.
//
// A proof covers what the function did with the transaction. It does not cover a request to another service.
//
// [Store.Schema] has the DDL of two tables, and [Store.CreateTables] runs it. Rows stay until [Store.DeleteBefore] deletes them.
// [Store.Fence] refuses writes of a holder that a later one has overtaken, with or without a proof.
//
// The package needs database/sql only: the driver is yours. It is tested with pgx (through its package stdlib) and lib/pq on
// PostgreSQL, go-sql-driver/mysql on MariaDB, and modernc.org/sqlite.
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/sql.md.
package sqllock
