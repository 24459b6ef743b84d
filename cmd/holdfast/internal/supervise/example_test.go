//go:build linux || darwin

package supervise_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
)

// TestMain makes the test binary a supervisor if a parent has started it.
func TestMain(m *testing.M) {
	if supervise.IsSupervisor() {
		keep()
	}
	os.Exit(m.Run())
}

// lease is held for a minute. Others are renewed, see [supervise.Supervisor.Renewed].
type lease struct{ until time.Time }

func (l lease) ValidUntil() time.Time  { return l.until }
func (lease) Context() context.Context { return context.Background() }

// keep is what the supervisor does: it gets a lock, and runs a command under it.
func keep() {
	supervisor, err := supervise.Attach()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	outcome, err := supervisor.Run(
		lease{time.Now().Add(time.Minute)},
		supervise.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 7"}, Env: os.Environ},
		supervise.Limits{KillBefore: 10 * time.Second, Margin: time.Second},
	)
	if err != nil {
		fmt.Fprintln(supervisor.Stderr(), err)
	}
	supervisor.Exit(outcome.ExitStatus())
}

// The parent starts the same program again as the supervisor.
func ExampleRunParent() {
	status, err := supervise.RunParent()
	fmt.Println(status, err)
	// Output: 7 <nil>
}

func ExampleSignalStatus() {
	fmt.Println(supervise.SignalStatus(syscall.SIGTERM))
	// Output: 143
}
