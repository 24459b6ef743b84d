package main

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// startRedis uses the Redis that url names, or starts one in this process if url is empty. That forgets nothing, which
// does not matter for some seconds.
func startRedis(url string) (options *redis.Options, stop func(), err error) {
	if url != "" {
		options, err = redis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		return options, func() {}, nil
	}
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, nil, fmt.Errorf("embedded Redis: %w", err)
	}
	return &redis.Options{Addr: mini.Addr()}, mini.Close, nil
}
