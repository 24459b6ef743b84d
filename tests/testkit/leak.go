package testkit

import (
	"context"
	"flag"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// lastDials is how long go-redis may continue to dial for a client that was closed: a second to notice that after a
// server was down, and some more to ask sentinels that are gone where the master is.
const lastDials = 15 * time.Second

// VerifyTestMain runs the tests of a package, as its TestMain, and fails if they
// leave a goroutine behind.
//
// Unless told otherwise it lets four times as many tests run in parallel as there are processors. Tests wait for servers
// and for TTLs much of the time. Eight times as many took as long, and beside other work their short leases expired.
func VerifyTestMain(m *testing.M) { verify(m, 4) }

// VerifyWaitingMain is [VerifyTestMain] for a package whose tests do little but wait: eight times as many run in parallel as
// there are processors. The options are for goroutines of others that never end.
func VerifyWaitingMain(m *testing.M, ignored ...goleak.Option) { verify(m, 8, ignored...) }

func verify(m *testing.M, perProcessor int, ignored ...goleak.Option) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(perProcessor*runtime.GOMAXPROCS(0)))
	}
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(calm{m, ignored}, ignored...)
}

// silent is the logger of go-redis in tests, which give it reasons to complain all the time.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// calm are tests that have ended when the last dials have.
type calm struct {
	m       *testing.M
	ignored []goleak.Option
}

func (c calm) Run() int {
	code := c.m.Run()
	for deadline := time.Now().Add(lastDials); goleak.Find(c.ignored...) != nil && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	return code
}
