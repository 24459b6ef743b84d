//go:build !linux && !darwin

package supervise

import (
	"context"
	"io"
	"os"
)

// Supervisor is the process that holds the lock and starts the command. There is none on this system.
type Supervisor struct{}

// IsSupervisor reports whether [RunParent] has started this process.
func IsSupervisor() bool { return false }

// RunParent returns the error of [Supported].
func RunParent() (int, error) { return 0, Supported() }

// Attach returns the error of [Supported].
func Attach() (*Supervisor, error) { return nil, Supported() }

// Context returns a context that does not end.
func (*Supervisor) Context() context.Context { return context.Background() }

// Stderr returns a writer for messages to people.
func (*Supervisor) Stderr() io.Writer { return os.Stderr }

// Renewed does nothing.
func (*Supervisor) Renewed() {}

// Exit ends the process.
func (*Supervisor) Exit(status int) { os.Exit(status) }

// Run returns the error of [Supported].
func (*Supervisor) Run(Hold, Command, Limits) (Outcome, error) { return Outcome{}, Supported() }
