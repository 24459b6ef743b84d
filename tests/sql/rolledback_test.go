//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
)

// TestDeadlockIgnored: MariaDB rolls back the whole transaction of a deadlock. A function that ignores the error and continues has no
// effect, and the key runs again as a whole.
func TestDeadlockIgnored(t *testing.T) {
	t.Parallel()
	server := databases.StartMariaDB(t)
	for name, level := range levels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, locks := start(t)
			b := system{name, sqllock.MySQL, level, on(server.Server)}.bank(t)
			b.db.SetMaxOpenConns(2) // so that the connection of InTx is used again
			b.exec("CREATE TABLE account (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) ENGINE = InnoDB")
			for i := range 100 {
				b.exec(fmt.Sprintf("INSERT INTO account VALUES (%d, 0)", i))
			}
			deadlock := func(ctx context.Context, tx *sql.Tx) error {
				other, err := b.db.BeginTx(ctx, nil) // it has written more, so the database lets it go on
				if err != nil {
					return err
				}
				defer other.Rollback()
				if _, err := other.ExecContext(ctx, "UPDATE account SET n = n + 1 WHERE id > 0"); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, "UPDATE account SET n = 1 WHERE id = 0"); err != nil {
					return err
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = other.ExecContext(ctx, "UPDATE account SET n = 2 WHERE id = 0")
				}()
				_, err = tx.ExecContext(ctx, "UPDATE account SET n = 1 WHERE id = 1")
				<-ended
				return err
			}
			once := locks.Once(key, core.WithProof(b.Store))
			_, err := once.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
				return b.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
					if err := deadlock(ctx, tx); err == nil {
						t.Error("no deadlock")
					}
					return debit(ctx, tx)
				})
			})
			wantText(t, err, "itself")
			if n := b.debits(); n != 0 {
				t.Errorf("%d debits without a proof", n)
			}
			if _, err := once.Do(t.Context(), b.pays()); err != nil {
				t.Error(err)
			}
			if n := b.debits(); n != 1 {
				t.Errorf("%d debits", n)
			}
			for range 3 { // the connections commit each statement again
				b.exec("INSERT INTO debit (payment, n) VALUES ('43', 1)")
			}
			if n := b.debits(); n != 4 {
				t.Errorf("%d debits: a statement outside of InTx is not committed", n)
			}
		})
	}
}
