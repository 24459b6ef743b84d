package messages

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/sqllock"
)

const workerVariable = "HOLDFAST_TEST_WORKER"

// config is what a consumer process is told.
type config struct {
	Fault        fault
	Broker, Addr string
	Name         string
	LocksNet     string
	Locks        string // address of the Redis of the guard
	Database     string // of PostgreSQL
	Guarded      bool
}

const (
	// expiry is how long a delivery lasts that is not acknowledged.
	expiry = 2 * time.Second
	// lease is the TTL of a claim: how long the messages of a killed consumer stay claimed.
	lease = 2 * time.Second
	// rebalanceTimeout is shorter than a slow handler, and longer than the delay of a message that has to come again.
	rebalanceTimeout = 3 * time.Second
)

// worker is a consumer process.
type worker struct {
	config
	db    *sql.DB
	store *sqllock.Store
	locks *core.Client
	drop  func() // loses the connection to the broker; nil if the broker delivers again by itself

	// unrecorded is locked for reading from an effect to core.Complete. A fault is one of the message that has it: it waits until no
	// message of another partition is in that gap.
	unrecorded sync.RWMutex
}

// fault is what a message does to its consumer, once.
type fault string

const (
	none         fault = "none"
	killBefore   fault = "killed before the handler"
	killIn       fault = "killed in the handler"
	killAfter    fault = "killed after core.Complete"
	killGap      fault = "killed between effect and record, with a proof"
	killUnacked  fault = "killed before the acknowledgement"
	slow         fault = "delivered again while the first is handled"
	poison       fault = "poison message"
	rebalance    fault = "rebalance"
	brokerBroken fault = "broker restarted"
	redisEmpty   fault = "Redis restarted without data"
)

// runWorker is the main function of a consumer process.
func runWorker(text string) {
	redis.SetLogger(quiet{})
	w := new(worker)
	err := json.Unmarshal([]byte(text), &w.config)
	if err == nil {
		w.db, err = sql.Open("pgx", w.Database)
	}
	if err == nil {
		w.store, err = sqllock.New(w.db, sqllock.Postgres)
	}
	if err == nil {
		rdb := redis.NewClient(&redis.Options{Network: w.LocksNet, Addr: w.Locks, DialTimeout: time.Second, ReadTimeout: time.Second})
		w.locks, err = core.New(rdb, core.WithTTL(lease), core.WithLogger(nil))
	}
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(brokers[w.Broker].consume(context.Background(), w))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// message is what is sent: "ID fault".
func message(id string, f fault) string { return id + " " + string(f) }

func read(text string) (id string, f fault) {
	id, what, _ := strings.Cut(text, " ")
	return id, fault(what)
}

// once returns true for the first call about a fault, in any process.
func (w *worker) once(id string, f fault) bool {
	result, err := w.db.Exec("INSERT INTO injected (id) VALUES ($1) ON CONFLICT DO NOTHING", id+" "+string(f))
	if err != nil {
		return false
	}
	n, _ := result.RowsAffected()
	return n == 1
}

func (w *worker) killIf(text string, wanted fault) {
	if id, f := read(text); f == wanted && w.once(id, f) {
		w.unrecorded.Lock()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// effect is the handler: it inserts a row.
func (w *worker) effect(ctx context.Context, text string) error {
	id, f := read(text)
	if f == poison {
		return &msglock.ParkedError{Err: fmt.Errorf("message %s cannot be read", id)}
	}
	w.killIf(text, killIn)
	if f == killGap && w.Guarded {
		_, err := w.store.InTx(ctx, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES ($1)", id)
			return nil, err
		})
		if err != nil {
			return err
		}
	} else if err := w.insert(ctx, id); err != nil {
		return err
	}
	w.killIf(text, killGap)
	w.killIf(text, killAfter)
	switch {
	case f == slow && w.once(id, f):
		if w.drop != nil {
			w.drop()
		}
		time.Sleep(2 * expiry)
	case f == rebalance && w.once(id, f):
		time.Sleep(2 * rebalanceTimeout)
	case f == brokerBroken, f == redisEmpty:
		time.Sleep(20 * time.Millisecond) // so that the restart falls into handlers
	}
	return nil
}

// insert inserts the row, and says at once that it has.
func (w *worker) insert(ctx context.Context, id string) error {
	w.unrecorded.RLock()
	defer w.unrecorded.RUnlock()
	if _, err := w.db.ExecContext(context.WithoutCancel(ctx), "INSERT INTO effects (id) VALUES ($1)", id); err != nil {
		return err
	}
	_ = core.Complete(ctx) // an error if there is no guard, or if Redis is unreachable: then the guard records the end
	return nil
}

// proof is nil except for the fault that needs one.
func (w *worker) proof() msglock.Option {
	if w.Fault == killGap {
		return core.WithProof(w.store)
	}
	return nil
}

var guardOptions = []msglock.Option{msglock.WithFinishTimeout(time.Second)}

// handlerOf returns what the recipe calls for one message. The heartbeat is the recipe's, nil if it has none.
func handlerOf[M any](w *worker, textOf func(M) string, heartbeat msglock.Option) func(context.Context, M) error {
	handle := func(ctx context.Context, m M) error { return w.effect(ctx, textOf(m)) }
	if w.Guarded {
		opts := guardOptions
		if w.Fault != slow { // the message should be delivered again while it is handled
			opts = append(opts, heartbeat)
		}
		handle = msglock.Once(w.locks, "tests", keyOf(textOf), handle, append(opts, w.proof())...)
	}
	return func(ctx context.Context, m M) error {
		w.killIf(textOf(m), killBefore)
		err := handle(ctx, m)
		w.killIf(textOf(m), killUnacked)
		return err
	}
}

// batchHandlerOf is handlerOf for a batch.
func batchHandlerOf[M any](w *worker, textOf func(M) string) func(context.Context, []M) []error {
	one := func(ctx context.Context, m M) error { return w.effect(ctx, textOf(m)) }
	handle := func(ctx context.Context, batch []M) (errs []error) {
		for _, m := range batch {
			errs = append(errs, one(ctx, m))
		}
		return errs
	}
	if w.Guarded {
		handle = msglock.OnceBatch(w.locks, "tests", keyOf(textOf), one, append(guardOptions, w.proof())...)
	}
	return func(ctx context.Context, batch []M) []error {
		for _, m := range batch {
			w.killIf(textOf(m), killBefore)
		}
		errs := handle(ctx, batch)
		for i, m := range batch {
			if errs[i] == nil {
				w.killIf(textOf(m), killUnacked)
			}
		}
		return errs
	}
}

func keyOf[M any](textOf func(M) string) msglock.KeyFunc[M] {
	return func(_ context.Context, m M) (string, error) {
		id, _ := read(textOf(m))
		return id, nil
	}
}
