package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	bolt "go.etcd.io/bbolt"
)

// item is what there is too little of.
const item = "voucher"

// site is the whole installation: Redis, the database and the replicas.
type site struct {
	config    config
	redis     *server
	prefix    string // of the locks: on a shared Redis, every sale has its own
	queue     string // of the receipts: each sale has its own too
	rdb       *redis.Client
	inspector *asynq.Inspector
	dir       string
	database  *bolt.DB
	watch     *watch
	gateway   gateway
	replicas  []*replica
}

// openSite starts everything. Nothing is left if that fails.
func openSite(ctx context.Context, cfg config) (_ *site, err error) {
	name := "flashsale:" + rand.Text()[:8]
	s := &site{config: cfg, watch: new(watch), prefix: name + ":", queue: name, gateway: gateway{time: cfg.gatewayTime}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.redis, err = startRedis(cfg.redisURL); err != nil {
		return nil, err
	}
	s.rdb = redis.NewClient(s.redis.options)
	s.inspector = asynq.NewInspectorFromRedisClient(s.rdb)
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.redis.kind, err)
	}
	if s.dir, err = os.MkdirTemp("", "flashsale-"); err != nil {
		return nil, err
	}
	if s.database, err = createDatabase(filepath.Join(s.dir, "shop.db"), item, cfg.stock); err != nil {
		return nil, err
	}
	for i := range cfg.replicas {
		r, err := startReplica(s, fmt.Sprintf("replica-%d", i+1))
		if err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

// close stops everything, the replicas side by side, and removes the database.
func (s *site) close() error {
	errs := make([]error, len(s.replicas))
	var closing sync.WaitGroup
	for i, r := range s.replicas {
		closing.Go(func() { errs[i] = r.close() })
	}
	closing.Wait()
	if s.rdb != nil {
		errs = append(errs, s.removeKeys(), s.rdb.Close())
	}
	if s.redis != nil {
		s.redis.close()
	}
	if s.database != nil {
		errs = append(errs, s.database.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *site) urls() []string {
	urls := make([]string, len(s.replicas))
	for i, r := range s.replicas {
		urls[i] = r.url
	}
	return urls
}

// stale counts the writes that the database refused.
func (s *site) stale() (n int64) {
	for _, r := range s.replicas {
		n += r.shop.store.stale.Load()
	}
	return n
}
