//go:build !linux && !darwin

package supervise

import (
	"context"
	"io"
	"os"
)

// Keeper is the process that holds the lock and starts the command. There is none on this system.
type Keeper struct{}

// IsKeeper reports whether [Front] has started this process.
func IsKeeper() bool { return false }

// Front returns the error of [Supported].
func Front() (int, error) { return 0, Supported() }

// Attach returns the error of [Supported].
func Attach() (*Keeper, error) { return nil, Supported() }

// Context returns a context that does not end.
func (*Keeper) Context() context.Context { return context.Background() }

// Stderr returns a writer for messages to people.
func (*Keeper) Stderr() io.Writer { return os.Stderr }

// Renewed does nothing.
func (*Keeper) Renewed() {}

// Exit ends the process.
func (*Keeper) Exit(status int) { os.Exit(status) }

// Run returns the error of [Supported].
func (*Keeper) Run(Hold, Command, Limits) (Outcome, error) { return Outcome{}, Supported() }
