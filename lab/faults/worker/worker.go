package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/register"
)

// worker is the process.
type worker struct {
	order    Order
	log      *history.Log
	register *register.Client
	rdbs     []redis.UniversalClient
	direct   redis.UniversalClient
	targets  []target
	locks    *core.Client  // nil for a Redlock
	redlock  *core.Redlock // nil for all others
	site     *site
	calls    atomic.Int64
	calm     atomic.Bool
	self     sync.WaitGroup // what commands have started
}

// Work carries out an order until the input ends, and says what happens on out.
func Work(text string, in io.Reader, out io.Writer) error {
	var order Order
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	logging.Disable() // it would tell of every dial while Redis is down
	w := &worker{order: order, log: history.NewLog(out, order.ID)}
	if err := w.open(); err != nil {
		return err
	}
	up := history.Event{Kind: history.Up, Value: int64(os.Getpid())}
	if order.Replicas && order.Link.Kind == Cluster {
		up.Row = rowReplicas
	}
	w.log.Say(up)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range order.Goroutines {
		all.Go(func() { w.loop(ctx, rand.New(rand.NewPCG(order.Seed, uint64(i)))) })
	}
	w.obey(ctx, in)
	stop()
	all.Wait()
	w.self.Wait()
	return w.close()
}

func (w *worker) open() (err error) {
	if w.register, err = register.Dial(w.order.Register); err != nil {
		return err
	}
	w.rdbs, w.direct = w.order.connect(), w.order.connectDirectly()
	opts := []core.Option{core.WithLogger(nil), core.WithTTL(w.order.TTL), core.WithHooks(core.Hooks{AttemptEnd: finished})}
	if w.order.ReplicaAck > 0 {
		opts = append(opts, core.WithReplicaAck(w.order.ReplicaAck, (w.order.TTL/3).Truncate(time.Millisecond)))
	}
	if w.order.Link.Kind == Redlock {
		if w.redlock, err = core.NewRedlock(w.rdbs, opts...); err != nil {
			return err
		}
		w.targets = redlockTargets(w.redlock)
	} else {
		if w.locks, err = core.New(w.rdbs[0], opts...); err != nil {
			return err
		}
		w.targets = targets(w.locks)
	}
	w.site = &site{w: w}
	return w.site.open()
}

func (w *worker) close() error {
	w.log.Say(history.Event{Kind: history.Leaving})
	err := w.site.close()
	if w.redlock != nil {
		err = errors.Join(err, w.redlock.Close())
	} else {
		err = errors.Join(err, w.locks.Close())
	}
	w.log.Say(history.Event{Kind: history.Left, Value: int64(leftovers()), Err: Class(err)})
	_ = w.register.Close()
	for _, rdb := range w.rdbs {
		_ = rdb.Close()
	}
	if w.direct != nil {
		_ = w.direct.Close()
	}
	return w.log.Err()
}

// loop locks this and that. It ends the process if the register is gone, since nothing would be worth anything then.
func (w *worker) loop(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		switch {
		case w.order.Limits != nil:
			w.visit(ctx, random, limited(w.locks, w.order.Limits.now(), 1))
		case w.locks != nil && random.IntN(8) == 0:
			w.once(ctx, random)
		case w.locks != nil && random.IntN(16) == 0:
			w.elect(ctx, random)
		case random.IntN(12) == 0:
			w.exclusive(ctx, random)
		case w.locks != nil && random.IntN(12) == 0:
			w.idempotent(ctx, random)
		default:
			w.visit(ctx, random, w.targets[random.IntN(len(w.targets))])
		}
		sleep(ctx, time.Duration(random.Int64N(int64(w.order.Pause))))
	}
}

// next returns the number of a call.
func (w *worker) next() int64 { return w.calls.Add(1) }

// write writes to the resource, and to the one that does not look at tokens.
func (w *worker) write(call int64, name string, token int64, unfenced bool) {
	_, err := w.register.Write(register.Request{
		By: w.order.ID, Call: call, Name: name, Token: token, Unfenced: unfenced,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "register:", err)
		os.Exit(1)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
