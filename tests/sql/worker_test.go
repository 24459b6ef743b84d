//go:build unix

package sql_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const workerEnv = "HOLDFAST_SQL_WORKER"

func TestMain(m *testing.M) {
	if order := os.Getenv(workerEnv); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.VerifyTestMain(m)
}

// The ways to pay.
const (
	withProof = "guard and proof"
	overHTTP  = "HTTP guard and proof"    // httplock.Idempotent on a server of the process
	byTask    = "asynq guard and proof"   // asynqlock.Once on an asynq server of the process
	retrying  = "guard"                   // without a proof: a crashed run may run again
	holding   = "guard with HoldFailures" // without a proof: a crashed run is left to an operator
	unguarded = "no guard"
)

// order is what a worker process does: it pays, and when all payments are at the step, it does what the fault is.
type order struct {
	Mode, Step, Fault string
	Payments          []string
	Network, Redis    string
	Driver, DSN       string
	TTL               time.Duration
	Level             sql.IsolationLevel
}

// The faults.
const (
	killed  = "process killed"
	stopped = "process stopped"
	cut     = "connection cut"
)

// payer pays in one process.
type payer struct {
	order
	db    *sql.DB
	rdb   *redis.Client
	locks *core.Client
	store *sqllock.Store
	http  *httptest.Server // nil unless the mode is overHTTP
	tasks *queue           // nil unless the mode is byTask
	at    func(step string) bool
}

func (o order) payer(at func(step string) bool) (*payer, error) {
	return o.payerOn(redis.NewClient(&redis.Options{Network: o.Network, Addr: o.Redis, ContextTimeoutEnabled: true}), at)
}

// payerOn is payer with a client of Redis, which it closes.
func (o order) payerOn(rdb *redis.Client, at func(step string) bool) (*payer, error) {
	if at == nil {
		at = func(string) bool { return false }
	}
	db, err := faulty(o.Driver, o.DSN, at)
	if err != nil {
		return nil, err
	}
	dialect := map[string]sqllock.Dialect{"pgx": sqllock.Postgres, "mysql": sqllock.MySQL, "sqlite": sqllock.SQLite}[o.Driver]
	store, err := sqllock.New(db, dialect, sqllock.OnlyEffect(), sqllock.WithTxOptions(sql.TxOptions{Isolation: o.Level}))
	if err != nil {
		return nil, err
	}
	rdb.AddHook(completeHook{at})
	locks, err := core.New(rdb, core.WithInstance(""), core.WithTTL(o.TTL), core.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	p := &payer{o, db, rdb, locks, store, nil, nil, at}
	switch o.Mode {
	case byTask:
		if p.tasks, err = p.startQueue(); err != nil {
			return nil, err
		}
	case overHTTP:
		guard, err := httplock.NewIdempotent(locks, httplock.Unscoped(), core.WithTTL(o.TTL), core.WithProof(store), httplock.WithAskTimeout(10*time.Second),
			core.WithFailurePolicy(core.HoldFailures))
		if err != nil {
			return nil, err
		}
		p.http = httptest.NewServer(guard.Wrap(p))
	}
	return p, nil
}

// ServeHTTP is the handler of a payment, whose name is the body.
func (p *payer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	payment, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = p.store.InTx(r.Context(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := p.debit(ctx, tx, string(payment))
			return []byte("HTTP/1.1 201 Created\nContent-Type: text/plain\n\npaid"), err
		})
	}
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	p.at(afterCommit)
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "paid")
}

// request pays by a request to the server.
func (p *payer) request(ctx context.Context, payment string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.http.URL, strings.NewReader(payment))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", payment)
	response, err := p.http.Client().Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusCreated && string(body) == "paid":
		return nil
	case strings.Contains(string(body), httplock.CodeOutcomeUnknown):
		return core.ErrOutcomeUnknown
	case strings.Contains(string(body), httplock.CodeAlreadyCompleted):
		return fmt.Errorf("the response is lost: %s", body)
	}
	return fmt.Errorf("%s: %s", response.Status, body)
}

// queue is an asynq queue with a server of its own.
type queue struct {
	name      string
	client    *asynq.Client
	inspector *asynq.Inspector
	server    *asynq.Server
}

// kind is the type of tasks.
const kind = "payment"

var queueNumber atomic.Int64

func (p *payer) startQueue() (*queue, error) {
	guard, err := asynqlock.NewOnce(p.locks, asynqlock.ByPayload("payment"), core.WithTTL(p.TTL), core.WithProof(p.store),
		core.WithFailurePolicy(core.HoldFailures), core.WithWait(10*time.Second), asynqlock.WithRetryIn(time.Second))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("of-%d-%d", os.Getpid(), queueNumber.Add(1))
	cfg := asynq.Config{
		Concurrency: 2 * batch, Queues: map[string]int{name: 1}, LogLevel: asynq.FatalLevel, // half of the workers can wait for a lease
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond, ShutdownTimeout: time.Second,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	}
	asynqlock.Configure(&cfg)
	opt := asynq.RedisClientOpt{Network: p.Network, Addr: p.Redis}
	mux := asynq.NewServeMux()
	mux.Use(p.answering, guard.Wrap)
	mux.Handle(kind, asynqlock.WithResult(p.process))
	q := &queue{name, asynq.NewClient(opt), asynq.NewInspector(opt), asynq.NewServer(opt, cfg)}
	return q, q.server.Start(mux)
}

// process is the handler of a task.
func (p *payer) process(ctx context.Context, t *asynq.Task) ([]byte, error) {
	var of struct{ Payment string }
	if err := json.Unmarshal(t.Payload(), &of); err != nil {
		return nil, err
	}
	value, err := p.store.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) { return p.debit(ctx, tx, of.Payment) })
	if err == nil {
		p.at(afterCommit)
	}
	return value, err
}

// answering is in front of the guard. With cut, asynq does not learn that a task has succeeded.
func (p *payer) answering(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		err := next.ProcessTask(ctx, t)
		if err == nil && p.at(beforeAnswer) {
			err = errors.New("connection reset by peer")
		}
		return err
	})
}

// enqueue pays by a task, and waits for its result.
func (p *payer) enqueue(ctx context.Context, payment string) error {
	task := asynq.NewTask(kind, []byte(`{"payment":"`+payment+`"}`))
	_, err := p.tasks.client.EnqueueContext(ctx, task, asynq.Queue(p.tasks.name), asynq.TaskID(payment), asynq.Retention(time.Hour),
		asynq.MaxRetry(1000))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return err
	}
	for ctx.Err() == nil {
		info, err := p.tasks.inspector.GetTaskInfo(p.tasks.name, payment)
		switch {
		case err != nil:
			return err
		case info.State == asynq.TaskStateCompleted && string(info.Result) == "paid":
			return nil
		case info.State == asynq.TaskStateCompleted:
			return fmt.Errorf("the result is %q", info.Result)
		case info.State == asynq.TaskStateArchived:
			return fmt.Errorf("%w: %s", core.ErrOutcomeUnknown, info.LastErr)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

func (q *queue) close() {
	q.server.Shutdown()
	_ = q.client.Close()
	_ = q.inspector.Close()
}

func (p *payer) close() {
	if p.tasks != nil {
		p.tasks.close()
	}
	if p.http != nil {
		p.http.Close()
	}
	_ = p.locks.Close()
	_ = p.rdb.Close()
	_ = p.db.Close()
}

// completeHook calls at before the command that completes an attempt. With cut, the command fails.
type completeHook struct{ at func(string) bool }

func (h completeHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h completeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if completes(cmd) && h.at(beforeComplete) {
			err := &net.OpError{Op: "write", Err: syscall.ECONNRESET}
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (h completeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if completes(cmd) && h.at(beforeComplete) {
				err := &net.OpError{Op: "write", Err: syscall.ECONNRESET}
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// completes reports whether a command completes an attempt: it has the value of a payment.
func completes(cmd redis.Cmder) bool {
	for _, arg := range cmd.Args() {
		switch arg := arg.(type) {
		case []byte:
			if bytes.Contains(arg, []byte("paid")) {
				return true
			}
		case string:
			if strings.Contains(arg, "paid") {
				return true
			}
		}
	}
	return false
}

// debit is the effect of a payment.
func (p *payer) debit(ctx context.Context, tx *sql.Tx, payment string) ([]byte, error) {
	query := "INSERT INTO debit (payment, n) VALUES ($1, 1)"
	if p.Driver == "mysql" {
		query = "INSERT INTO debit (payment, n) VALUES (?, 1)"
	}
	_, err := tx.ExecContext(ctx, query, payment)
	return []byte("paid"), err
}

// pay pays once.
func (p *payer) pay(ctx context.Context, payment string, at func(string) bool) (err error) {
	debit := func(ctx context.Context, tx *sql.Tx) ([]byte, error) { return p.debit(ctx, tx, payment) }
	plainly := func(ctx context.Context) ([]byte, error) {
		tx, err := p.db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		if at != nil { // in the place of the row
			_, _ = tx.ExecContext(ctx, "SELECT pay FROM (SELECT 1 AS pay) AS p")
		}
		value, err := debit(ctx, tx)
		if err != nil {
			return nil, err
		}
		return value, tx.Commit()
	}
	fn := func(ctx context.Context) (value []byte, err error) {
		if p.Mode == withProof {
			value, err = p.store.InTx(ctx, debit)
		} else {
			value, err = plainly(ctx)
		}
		if err == nil && at != nil {
			at(afterCommit)
		}
		return value, err
	}
	switch p.Mode {
	case byTask:
		return p.enqueue(ctx, payment)
	case overHTTP:
		err = p.request(ctx, payment)
	case unguarded:
		_, err = fn(ctx)
		if err == nil && at != nil {
			at(beforeComplete)
		}
	default:
		opts := []core.OnceOption{core.WithTTL(p.TTL)}
		if p.Mode != retrying {
			opts = append(opts, core.WithFailurePolicy(core.HoldFailures))
		}
		if p.Mode == withProof {
			opts = append(opts, core.WithProof(p.store))
		}
		var r core.Result
		r, err = p.locks.Once(payment, opts...).Do(ctx, fn)
		if err == nil && string(r.Value) != "paid" {
			err = fmt.Errorf("the value is %q", r.Value)
		}
	}
	if err == nil && at != nil && at(beforeAnswer) {
		err = errors.New("connection reset by peer")
	}
	return err
}

// work is a worker process.
func work(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var arrived atomic.Int64
	all := make(chan struct{})
	at := func(step string) bool {
		if step != o.Step {
			return false
		}
		n := arrived.Add(1)
		switch {
		case n > int64(len(o.Payments)): // of a later transaction
			return false
		case n == int64(len(o.Payments)):
			fmt.Println("arrived")
			switch o.Fault {
			case killed:
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case stopped:
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
			close(all)
		}
		<-all
		return o.Fault == cut
	}
	p, err := o.payer(at)
	if err != nil {
		return err
	}
	defer p.close()
	var payments sync.WaitGroup
	for _, payment := range o.Payments {
		payments.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			for ctx.Err() == nil {
				err := p.pay(ctx, payment, at)
				if err != nil {
					fmt.Fprintf(os.Stderr, "%s: %v\n", payment, err)
				}
				switch all := arrived.Load() >= int64(len(o.Payments)); {
				case all:
					return
				case err == nil:
					fmt.Println("passed")
					os.Exit(0)
				}
				time.Sleep(20 * time.Millisecond) // a busy machine has kept it from the step
			}
		})
	}
	payments.Wait()
	return nil
}

// worker is a worker process as its test sees it.
type worker struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs *strings.Builder
}

func startWorker(t testing.TB, o order) *worker {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, cmd: exec.Command(os.Args[0]), errs: new(strings.Builder)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	w.cmd.Stderr = w.errs
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// arrive waits until all payments are at the step. It returns false if one has passed it, as a busy machine can lead it: its commit is
// found out about, or its lease is lost there.
func (w *worker) arrive() bool {
	w.t.Helper()
	switch line, err := w.out.ReadString('\n'); line {
	case "arrived\n":
		return true
	case "passed\n":
		w.end()
		return false
	default:
		w.end()
		w.t.Fatalf("the worker said %q, %v: %s", line, err, w.errs)
		return false
	}
}

func (w *worker) wake() { _ = w.cmd.Process.Signal(syscall.SIGCONT) }

// end waits for the end of the process.
func (w *worker) end() {
	_, _ = io.Copy(io.Discard, w.out)
	_ = w.cmd.Wait()
}

// tally counts what has become of payments.
type tally struct {
	mu                               sync.Mutex
	payments, twice, lost, operators int
}

func (t *tally) String() string {
	return fmt.Sprintf("%d payments: %d twice, %d lost, %d for an operator", t.payments, t.twice, t.lost, t.operators)
}

// cell is the tally as a cell of a table.
func (t *tally) cell() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{t.twice, "twice"}, {t.lost, "lost"}, {t.operators, "for an operator"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprint(part.n, " ", part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "0") + fmt.Sprint(" of ", t.payments)
}

func (t *tally) add(other *tally) {
	t.payments, t.twice, t.lost, t.operators = t.payments+other.payments, t.twice+other.twice, t.lost+other.lost, t.operators+other.operators
}

// retry is the client of a payment: it comes again until the payment has succeeded. It returns false if an operator has to decide.
func (p *payer) retry(ctx context.Context, payment string) (bool, error) {
	for {
		err := p.pay(ctx, payment, nil)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, core.ErrOutcomeUnknown):
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
