// Package installed has what all guards of the suites share: which one is installed, on which Redis, and what came of it.
package installed

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// The variables of the environment of a test binary: the address of Redis, and what is installed. Without them nothing is.
const (
	Redis = "HOLDFAST_SUITE_REDIS"
	Guard = "HOLDFAST_SUITE_GUARD"
)

// The names under which a test binary leaves in Redis what its guards have done: a hash of counts, and a list of log lines.
const (
	Counts = "suite:counts"
	Log    = "suite:log"
)

// header is the header field with the key of a request, which only the guard sees.
const header = "Holdfast-Suite-Key"

// Which returns the kind of guard, and whether it is in front of all middlewares of a route: "once" or "once, innermost".
func Which() (kind string, outermost bool) {
	kind, inner := strings.CutSuffix(os.Getenv(Guard), Innermost)
	return kind, !inner
}

// Baseline is a guard that guards nothing, and takes the time of one: it calls Ask before and after.
const Baseline = "baseline"

var baseline = sync.OnceValue(connect)

// connect returns a client of Redis without the goroutine that go-redis has for maintenance notifications, because grpc-go's tests look
// for goroutines that they have left behind.
func connect() *redis.Client {
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&redis.Options{Addr: os.Getenv(Redis), MaintNotificationsConfig: off})
}

// Ask asks Redis twice, which takes at least as long as a guard does at the beginning or at the end of a run.
func Ask() {
	for range 2 {
		baseline().Ping(context.Background())
	}
}

// Innermost is the suffix of the name of a guard right in front of the handler.
const Innermost = ", innermost"

// Locks returns the client of the guards.
func Locks() *core.Client {
	rdb := connect()
	count := func(what string) { rdb.HIncrBy(context.Background(), Counts, what, 1) }
	locks, err := core.New(rdb,
		core.WithLogger(slog.New(slog.NewTextHandler(lines{rdb}, nil))),
		core.WithHooks(core.Hooks{
			RunEnd: func(_ context.Context, end core.RunEnd) { count("run: " + recorded(end)) },
			NotRun: func(_ context.Context, not core.NotRun) { count("refused: " + not.Reason) },
			Incident: func(_ context.Context, incident core.Incident) {
				_, _ = fmt.Fprintf(lines{rdb}, "incident %s: %v", incident.Kind, incident.Err)
			},
		}))
	if err != nil {
		panic(err)
	}
	return locks
}

// recorded names how a run has ended for the guard.
func recorded(end core.RunEnd) string {
	switch {
	case end.Panicked:
		return "panicked"
	case end.State == core.StateNone && end.Err != nil:
		return "failed"
	case end.State == core.StateNone:
		return "passed"
	}
	return fmt.Sprint(end.State)
}

// lines writes log lines to Redis, because some of the tests read what is written to stderr.
type lines struct{ rdb *redis.Client }

func (l lines) Write(line []byte) (int, error) {
	l.rdb.RPush(context.Background(), Log, string(bytes.TrimSpace(line)))
	return len(line), nil
}

// Key gives each request a key of its own.
func Key(*http.Request) (httplock.Key, error) { return httplock.NewKey("request", uuid.NewString()) }

// Methods are those of the requests that are guarded.
var Methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect,
}

// Options returns options for a guard of HTTP of all usual methods, with bodies of up to 16 MiB. more are for one with an Idempotency-Key.
func Options() (all, more []httplock.Option) {
	all = []httplock.Option{
		httplock.WithMethods(Methods...),
		httplock.WithBodyLimit(16 << 20),
		httplock.WithAskTimeout(time.Minute), // on a slow machine too
	}
	return all, append(all, httplock.WithKeyHeader(header))
}

// Mark gives a request, by the function that sets a field of its header, a key for a guard with an Idempotency-Key.
func Mark(set func(name, value string)) { set(header, uuid.NewString()) }

// Unmark takes it away, in front of the handler.
func Unmark(del func(name string)) { del(header) }
