package testkit_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 10 * time.Second

func TestMain(m *testing.M) {
	testkit.VerifyTestMain(m)
}

// once makes a client try once, and wait for the reply as long as a test does.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.ReadTimeout = patience
	o.PoolSize = 1
}

// impatient returns the same client for what is to time out. What is to succeed may take longer on a busy machine.
func impatient(c *redis.Client) *redis.Client { return c.WithTimeout(500 * time.Millisecond) }

// warm opens the connection, so that a fault hits a command, not the handshake.
func warm(t *testing.T, c *redis.Client) *redis.Client {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := c.Ping(t.Context()).Err()
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("no connection: %v", err)
		}
	}
}

func wantInt(t *testing.T, c *redis.Client, key string, want int) {
	t.Helper()
	got, err := c.Get(t.Context(), key).Int()
	if err != nil || got != want {
		t.Fatalf("GET %s = %d, %v, want %d", key, got, err, want)
	}
}

// recorder is a testing.TB whose failures are a result of the test, not its end.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failure  string
	cleanups []func()
}

// record runs fn as a test of its own and returns its failure message.
func record(t *testing.T, fn func(tb testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		fn(r)
	}()
	<-done
	return r.failure
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.failure = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}
