package redistest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// dialRetry is a goroutine of go-redis: when all dials of a pool have failed, it
// tries once a second, and notices only then that the client was closed.
const dialRetry = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"

// VerifyTestMain runs the tests of a package, as its TestMain, and fails if they
// leave a goroutine behind. It adds to goleak.VerifyTestMain one exception, for
// what go-redis leaves for up to a second after a server was down.
//
// Unless told otherwise it lets sixteen times as many tests run in parallel as there are processors: they wait for
// servers and for TTLs most of the time.
func VerifyTestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(16*runtime.GOMAXPROCS(0)))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(dialRetry))
}
