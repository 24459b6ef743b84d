package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// server is the Redis of the sale.
type server struct {
	options *redis.Options
	kind    string
	close   func()
}

// startRedis uses the Redis that url names, or starts one in this process if url is empty.
func startRedis(url string) (*server, error) {
	if url == "" {
		return startEmbedded()
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return &server{options: options, kind: "Redis at " + options.Addr, close: func() {}}, nil
}

// startEmbedded serves real TCP on a free port of the loopback, like a Redis on this machine.
func startEmbedded() (*server, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	stop := moveTime(mini)
	return &server{
		options: &redis.Options{Addr: mini.Addr()},
		kind:    "embedded Redis",
		close:   func() { stop(); mini.Close() },
	}, nil
}

// tick is how often time moves in the embedded Redis, and so by how much a key may expire too early: nothing,
// compared with leases of 30 s.
const tick = 50 * time.Millisecond

// moveTime lets keys expire, which the embedded Redis, made for tests, does only on request. Its own ClockTTL
// does the same on every command, and visits all keys each time: too slow for thousands of them.
func moveTime(mini *miniredis.Miniredis) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case now := <-ticker.C:
				mini.FastForward(now.Sub(last))
				last = now
			case <-done:
				return
			}
		}
	})
	return func() { close(done); running.Wait() }
}
