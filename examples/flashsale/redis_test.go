package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// The lock rests on time that passes in Redis too.
func TestEmbeddedRedisKeepsTime(t *testing.T) {
	t.Parallel()
	s, err := startRedis("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	rdb := redis.NewClient(s.options)
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithTTL(4*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()

	began := time.Now()
	renewed, err := locks.Mutex("renewed").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Mutex("left").Lock(t.Context(), core.WithFixedTTL(500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Mutex("left").Lock(t.Context(), core.WithWait(time.Minute)); err != nil {
		t.Errorf("a lock that nobody renews does not free itself: %v", err)
	}
	for renewed.Context().Err() == nil && renewed.ValidUntil().Before(began.Add(10*time.Second)) {
		time.Sleep(10 * time.Millisecond)
	}
	if err := renewed.Unlock(t.Context()); err != nil {
		t.Errorf("a lock that is renewed was lost: %v", err)
	}
}
