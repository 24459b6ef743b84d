package redistest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ForExample runs a server for an Example function, which has no testing.TB, and
// returns a connection to it. It ends when stop is called.
func ForExample() (rdb *redis.Client, stop func()) {
	t := &example{}
	return Start(t).Client(), t.end
}

// example is the testing.TB of an Example: what Start and Client need of one.
type example struct {
	testing.TB
	cleanups []func()
}

func (*example) Helper()                           {}
func (e *example) Cleanup(f func())                { e.cleanups = append(e.cleanups, f) }
func (*example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*example) Logf(string, ...any)               {}

func (e *example) end() {
	for _, cleanup := range slices.Backward(e.cleanups) {
		cleanup()
	}
}
