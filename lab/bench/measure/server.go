package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// StartServers runs redis-servers on this machine until stop is called: on unix sockets, or on free ports with
// [testkit.TCP].
func StartServers(n int, options ...testkit.Option) (servers []*testkit.Server, stop func()) {
	p := &process{}
	for range n {
		servers = append(servers, testkit.Start(p, options...))
	}
	return servers, p.end
}

// Host returns what starts servers and relays as a test would, until end is called.
func Host() (host testing.TB, end func()) {
	p := &process{}
	return p, p.end
}

// StartCluster runs a Cluster of that many masters on this machine until stop is called.
func StartCluster(masters int) (cluster *testkit.Cluster, stop func()) {
	p := &process{}
	return testkit.StartCluster(p, masters), p.end
}

// Load is what a server was asked to do.
type Load struct{ Commands, Usec float64 }

// Loads counts the named commands only: commands that a script runs are counted by the server as well, and their time
// is part of the script's.
func Loads(server *testkit.Server, names []string) (l Load) {
	stats := server.CommandStats()
	for _, name := range names {
		l.Commands += float64(stats[name].Calls)
		l.Usec += float64(stats[name].Usec)
	}
	return l
}

// Since returns what was asked between before and l.
func (l Load) Since(before Load) Load {
	return Load{Commands: l.Commands - before.Commands, Usec: l.Usec - before.Usec}
}

// CPUTime is what a server has used so far, in user and kernel mode: its main thread, where the server tells that apart
// from the threads that write and free in the background, as Redis 7 does.
func CPUTime(ctx context.Context, rdb *redis.Client) (time.Duration, error) {
	text, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("time of the server: %w", err)
	}
	return parseCPUTime(text)
}

func parseCPUTime(info string) (time.Duration, error) {
	fields := infoFields(info)
	const thread = "_main_thread"
	suffix := ""
	if fields["used_cpu_user"+thread] != "" && fields["used_cpu_sys"+thread] != "" {
		suffix = thread
	}
	user, err := strconv.ParseFloat(fields["used_cpu_user"+suffix], 64)
	system, failure := strconv.ParseFloat(fields["used_cpu_sys"+suffix], 64)
	if err := errors.Join(err, failure); err != nil {
		return 0, fmt.Errorf("time of the server: %w", err)
	}
	return time.Duration((user + system) * float64(time.Second)), nil
}

// process is what testkit needs of a test, for a program.
type process struct {
	testing.TB
	cleanups []func()
}

func (*process) Helper()             {}
func (p *process) Cleanup(f func())  { p.cleanups = append(p.cleanups, f) }
func (*process) Logf(string, ...any) {}

// Fatalf panics: without a server there is nothing to measure.
func (*process) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*process) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (p *process) end() {
	for _, cleanup := range slices.Backward(p.cleanups) {
		cleanup()
	}
	p.cleanups = nil
}
