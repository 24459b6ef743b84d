package middleware_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.VerifyTestMain(m)
}

// startRedis runs a Redis server for an Example, which has no testing.TB.
func startRedis() (rdb *redis.Client, stop func()) {
	var tb exampleTB
	return redistest.Start(&tb).Client(), tb.stop
}

type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper() {}

func (*exampleTB) Errorf(string, ...any) {}

func (*exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *exampleTB) Cleanup(fn func()) { tb.cleanups = append(tb.cleanups, fn) }

func (tb *exampleTB) stop() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}
