package redistest

import (
	"testing"

	"go.uber.org/goleak"
)

// dialRetry is a goroutine of go-redis: when all dials of a pool have failed, it
// tries once a second, and notices only then that the client was closed.
const dialRetry = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"

// VerifyTestMain runs the tests of a package, as its TestMain, and fails if they
// leave a goroutine behind. It adds to goleak.VerifyTestMain one exception, for
// what go-redis leaves for up to a second after a server was down.
func VerifyTestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(dialRetry))
}
