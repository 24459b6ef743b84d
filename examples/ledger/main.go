// Ledger debits an account from an HTTP handler, an asynq task and a message, with one proof in the database: a Redis
// that has lost its records leads to no second debit, and the caller gets the first answer.
//
// Run it from the root of the repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/ledger
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/sqllock"
)

func main() { example.Main(run) }

// ledger debits accounts in a database.
type ledger struct{ store *sqllock.Store }

// debit is the effect, behind whichever guard. The value that it returns is the answer, which is committed with it.
func (l ledger) debit(ctx context.Context, cents int, answer string) ([]byte, error) {
	return l.store.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, "UPDATE account SET cents = cents - ?", cents)
		return []byte(answer), err
	})
}

// pay is the HTTP handler. What it commits is its response as text, so that a later request gets the whole of it.
func (l ledger) pay(w http.ResponseWriter, r *http.Request) {
	_, err := l.debit(r.Context(), 100, "HTTP/1.1 201 Created\nContent-Type: text/plain\n\npaid")
	if err != nil { // also core.ErrCompleted: then the guard answers in place of this handler
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, "paid")
}

// subscribe is the handler of tasks.
func (l ledger) subscribe(ctx context.Context, _ *asynq.Task) error {
	result, err := l.debit(ctx, 900, "subscribed")
	if err != nil {
		return err
	}
	return asynqlock.SetResult(ctx, result)
}

// fee is a message of a broker.
type fee struct{ Account, Month string }

// charge is the handler of messages.
func (l ledger) charge(ctx context.Context, _ fee) error {
	_, err := l.debit(ctx, 50, "charged")
	return err // after core.ErrCompleted, the guard acknowledges the message all the same
}

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	db, err := sql.Open("sqlite", "file:ledger?mode=memory&cache=shared&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // of a database in memory
	if _, err := db.ExecContext(ctx, "CREATE TABLE account (cents INTEGER); INSERT INTO account VALUES (5000)"); err != nil {
		return err
	}
	store, err := sqllock.New(db, sqllock.SQLite, sqllock.OnlyEffect())
	if err == nil {
		err = store.CreateTables(ctx)
	}
	if err != nil {
		return err
	}
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()

	l := ledger{store}
	payments, err := httplock.NewIdempotent(locks, httplock.Unscoped(),
		core.WithProof(store), core.WithFailurePolicy(core.HoldFailures),
		core.WithRetention(time.Minute)) // short, as the proof outlasts the record and refuses a repetition after it
	if err != nil {
		return err
	}
	tasks, err := asynqlock.NewOnce(locks, asynqlock.ByPayload("user"), core.WithProof(store), core.WithRetention(time.Minute))
	if err != nil {
		return err
	}
	fees, err := msglock.NewOnce(locks, "ledger", func(_ context.Context, f fee) (string, error) { return f.Account + f.Month, nil },
		l.charge, core.WithProof(store), core.WithRetention(time.Minute))
	if err != nil {
		return err
	}
	pay, subscribe := payments.Wrap(http.HandlerFunc(l.pay)), tasks.Wrap(asynq.HandlerFunc(l.subscribe))

	request := func(what string) {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", `"example-ledger"`)
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, r)
		fmt.Fprintf(out, "%s: %d %s, replayed: %t\n", what, w.Code, w.Body, w.Header().Get("Idempotency-Replayed") == "true")
	}
	user := &asynq.TaskInfo{Type: "subscribe", Payload: []byte(`{"user":"ada"}`)}
	task := func(what string) {
		err := subscribe.ProcessTask(ctx, asynq.NewTask(user.Type, user.Payload))
		fmt.Fprintf(out, "%s: %v\n", what, err)
	}
	// lose deletes a record, as a failover to a replica does that has not got it. A Once without the proof does not ask it.
	lose := func(r core.Record, err error) error {
		if err != nil {
			return err
		}
		return locks.Once(r.Key).Forget(ctx, r)
	}

	request("payment")
	if err := lose(payments.Peek(ctx, "example-ledger")); err != nil {
		return err
	}
	request("payment, after Redis has lost its record")
	task("task")
	if err := lose(tasks.Peek(ctx, user)); err != nil {
		return err
	}
	task("task, after Redis has lost its record")
	fmt.Fprintf(out, "message: %v\n", fees.Handle(ctx, fee{"ada", "2026-11"}))
	if err := lose(fees.Peek(ctx, "ada2026-11")); err != nil {
		return err
	}
	fmt.Fprintf(out, "message, after Redis has lost its record: %v\n", fees.Handle(ctx, fee{"ada", "2026-11"}))

	var cents int
	err = db.QueryRowContext(ctx, "SELECT cents FROM account").Scan(&cents)
	fmt.Fprintf(out, "balance: %d cents\n", cents)
	return err
}
