package measure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// StartServers runs redis-servers on free ports of this machine until stop is called.
func StartServers(n int) (servers []*redistest.Server, stop func()) {
	p := &process{}
	for range n {
		servers = append(servers, redistest.Start(p, redistest.TCP()))
	}
	return servers, p.end
}

// Load is what a server was asked to do.
type Load struct{ Commands, Usec float64 }

// Loads counts the named commands only: commands that a script runs are counted by the server as well, and their time
// is part of the script's.
func Loads(server *redistest.Server, names []string) (l Load) {
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

// process is what redistest needs of a test, for a program.
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
