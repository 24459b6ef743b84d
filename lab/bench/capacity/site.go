package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// site is the servers of a measurement, and how clients reach them.
type site struct {
	meters  []*redis.Client // one for each server
	connect func() redis.UniversalClient
	stop    func()
	last    atomic.Int64 // number of the last name, of all fleets
}

func oneServer() *site {
	servers, stop := measure.StartServers(1, testkit.TCP())
	return &site{
		meters:  []*redis.Client{servers[0].Client()},
		connect: func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: servers[0].Addr()}) },
		stop:    stop,
	}
}

func clusterOf(masters int) *site {
	cluster, stop := measure.StartCluster(masters)
	s := &site{stop: stop}
	var addrs []string
	for _, server := range cluster.Masters {
		addrs = append(addrs, server.Addr())
		s.meters = append(s.meters, server.Client())
	}
	s.connect = func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	}
	return s
}

// usage returns what each server has used.
func (s *site) usage(ctx context.Context) (all []measure.Usage, err error) {
	for _, meter := range s.meters {
		u, err := measure.UsageOf(ctx, meter, contestant.HoldfastSends)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// flush leaves the servers without keys. They keep the scripts.
func (s *site) flush(ctx context.Context) error {
	for _, meter := range s.meters {
		if err := meter.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return nil
}

func (s *site) version(ctx context.Context) (string, error) {
	text, err := s.meters[0].Info(ctx, "server").Result()
	_, rest, _ := strings.Cut(text, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	return version, err
}

// fleet is clients of a site. Each has connections of its own, as a process of a deployment has.
type fleet struct {
	*site
	prefix  string // of names: a hash tag, if they share a slot
	clients []*core.Client
	rdbs    []redis.UniversalClient
}

// fleet connects clients. Each has locked a name once, so it has looked at the settings of the servers.
func (s *site) fleet(ctx context.Context, clients int, opts ...core.Option) (*fleet, error) {
	f := &fleet{site: s}
	for range clients {
		rdb := s.connect()
		f.rdbs = append(f.rdbs, rdb)
		client, err := core.New(rdb, opts...)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.clients = append(f.clients, client)
		if err := strategies()[0].pair(ctx, client, f.name(), 0); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

// name returns one that was not used before.
func (f *fleet) name() string { return fmt.Sprintf("%sorder:%d", f.prefix, f.last.Add(1)) }

func (f *fleet) close() (err error) {
	for _, client := range f.clients {
		err = errors.Join(err, client.Close())
	}
	for _, rdb := range f.rdbs {
		_ = rdb.Close() // nothing is in flight
	}
	return err
}
