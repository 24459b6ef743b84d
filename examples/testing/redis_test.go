package shop

import (
	"crypto/rand"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// newLocks returns a client on the Redis that REDIS_URL names, or on an embedded one. What a test leaves in a real Redis
// expires with its TTL or retention.
func newLocks(t *testing.T) *core.Client {
	t.Helper()
	url := os.Getenv("REDIS_URL")
	if url == "" {
		return locktest.New(t)
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	locks, err := core.New(rdb, core.WithPrefix("test:"+rand.Text()+":")) // names that no other test has
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = locks.Close()
		_ = rdb.Close()
	})
	return locks
}
