// Flashsale sells too few vouchers to too many people, on several servers at once.
//
// It starts three replicas of a web shop that share nothing but Redis and a database, and lets a crowd at them:
// 800 users want one of 200 vouchers. Each prices a cart, orders, and pays for the order, and sends each of these
// requests three times, twice at the same moment to two replicas. Everybody may have one voucher. The shop reads,
// asks another service and then writes, as most shops do, so much can go wrong. Guards, a lock and a job prevent it:
//
//	POST /cart/{id}/checkout   httplock.Exclusive: one at a time for each cart; may be repeated
//	POST /orders               httplock.Once: one order per user; a second one is refused, at any time
//	POST /payments             httplock.Idempotent: charged once; who asks again gets the same receipt
//	the stock, within orders   Lock.Do, waiting for a bounded time: one replica at a time takes from it
//	the payment gateway        Lock.Do of a Semaphore: it allows 20 calls at a time, from all replicas together
//	the settlement             cronlock.AddFunc: in the schedules of all replicas, each tick booked once
//	the receipts               asynqlock.Once: tasks that are enqueued twice; each order's is sent once
//
// Run it from the root of the repository. It needs nothing but Go: Redis is an embedded one, unless REDIS_URL
// names a real one, and the database is a file. The program removes its keys and the file at the end. The first run
// compiles for about a minute, and -v names each package meanwhile.
//
//	go run -v ./examples/flashsale            sell, and prove from the database that nothing went wrong
//	go run ./examples/flashsale -unguarded    the baseline: the same without the guards, which goes wrong
//	go run ./examples/flashsale -serve        keep the shop open, to try it by hand
//	go run ./examples/flashsale -picture FILE sell with and without guards, and draw both into an SVG file
//
// The exit status is 0 if all invariants hold, 1 if any broke (the baseline has to), 2 if the shop could not be
// run, and 130 after Ctrl-C. With -picture it is 0 if they hold with guards and break without.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// config is what the flags say.
type config struct {
	users, attempts, stock int
	clients, replicas      int
	gateway                int           // calls at a time that the payment gateway allows
	gatewayTime            time.Duration // of a call, at least; at most twice as long
	seed                   uint64
	patience               time.Duration
	guards                 func(*core.Client, config) guards
	unguarded              bool   // the guards are none
	redisURL               string // empty: embedded
}

var defaults = config{
	users: 800, attempts: 3, stock: 200,
	clients: 32, replicas: 3, gateway: 20, gatewayTime: 40 * time.Millisecond,
	seed:     1,
	patience: 5 * time.Second,
	guards:   locked,
}

// Exit statuses.
const (
	exitFine        = 0
	exitBroken      = 1
	exitFailed      = 2
	exitInterrupted = 130
)

func main() {
	cfg := defaults
	cfg.redisURL = os.Getenv("REDIS_URL")
	flag.IntVar(&cfg.users, "users", cfg.users, "users in the crowd")
	flag.IntVar(&cfg.attempts, "attempts", cfg.attempts, "how often users send the same, the first two at once")
	flag.IntVar(&cfg.stock, "stock", cfg.stock, "vouchers in stock")
	flag.IntVar(&cfg.clients, "clients", cfg.clients, "users in the shop at the same time")
	flag.IntVar(&cfg.replicas, "replicas", cfg.replicas, "replicas of the shop")
	flag.IntVar(&cfg.gateway, "gateway", cfg.gateway, "calls at a time that the payment gateway allows")
	flag.Uint64Var(&cfg.seed, "seed", cfg.seed, "of the order in which users come and of where they go")
	flag.DurationVar(&cfg.patience, "patience", cfg.patience, "how long requests wait for their turn")
	flag.BoolVar(&cfg.unguarded, "unguarded", false, "sell without the guards")
	serving := flag.Bool("serve", false, "keep the shop open until Ctrl-C instead of sending a crowd")
	picture := flag.String("picture", "", "sell with and without guards, and draw the outcome into this `file`")
	flag.Parse()
	if cfg.unguarded {
		cfg.guards = unlocked
	}
	if !*serving {
		slog.SetLogLoggerLevel(slog.LevelWarn) // the report counts the duplicates that asynqlock logs
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status, err := run(ctx, cfg, *serving, *picture)
	if err != nil {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		status = exitFailed
	}
	os.Exit(status)
}

// run serves the shop, or lets the crowd in, once or for a picture.
func run(ctx context.Context, cfg config, serving bool, picture string) (status int, err error) {
	if err := cfg.check(); err != nil {
		return 0, err
	}
	switch {
	case serving:
		return exitFine, keepOpen(ctx, cfg)
	case picture != "":
		return sellTwice(ctx, cfg, picture)
	}
	r, err := sell(ctx, cfg)
	if err != nil {
		return 0, err
	}
	return r.status(), nil
}

func (c config) check() error {
	if min(c.users, c.attempts, c.clients, c.replicas, c.gateway) < 1 {
		return errors.New("-users, -attempts, -clients, -replicas and -gateway must be at least 1")
	}
	if c.stock < 0 || c.patience <= 0 {
		return errors.New("-stock must not be negative, and -patience must be positive")
	}
	return nil
}
