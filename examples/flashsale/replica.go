package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// replica is one server of the shop with all that is its own: as if it ran on another machine, it shares
// nothing with the others but Redis and the database.
type replica struct {
	url   string
	shop  *shop
	http  *http.Server
	cron  *cron.Cron
	mail  *mailroom
	locks *core.Client
	rdb   *redis.Client
}

// startReplica serves a shop on a free port of the loopback.
func startReplica(s *site, name string) (*replica, error) {
	options := *s.redis.options
	rdb := redis.NewClient(&options)
	locks, err := core.New(rdb, core.WithPrefix(s.prefix), core.WithHooks(s.watch.hooks()))
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	r := &replica{cron: cron.New(), locks: locks, rdb: rdb}
	r.shop = &shop{name: name, item: item, store: &store{db: s.database}, guards: s.config.guards(locks, s.config), gateway: &s.gateway}
	if err := r.shop.guards.settlement(r.cron, r.shop.settle); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.mail, err = startMailroom(s, r.shop); err != nil {
		return nil, errors.Join(err, r.close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), r.close())
	}
	r.url = "http://" + listener.Addr().String()
	r.http = &http.Server{Handler: r.shop.handler(), ReadHeaderTimeout: 10 * time.Second}
	r.cron.Start()
	go func() {
		if err := r.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("flashsale: serve", "replica", name, "error", err)
		}
	}()
	return r, nil
}

// closeTimeout is how long orders and tasks under way may keep a replica from closing.
const closeTimeout = 10 * time.Second

// close waits for the jobs, the orders and the tasks under way and then lets go of everything: locks before their Redis
// client.
func (r *replica) close() error {
	<-r.cron.Stop().Done()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	if r.http != nil {
		err = r.http.Shutdown(ctx)
	}
	if r.mail != nil {
		err = errors.Join(err, r.mail.close(ctx))
	}
	return errors.Join(err, r.locks.Close(), r.rdb.Close())
}
