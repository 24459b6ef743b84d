package supervise

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Hold is what the command runs under: a lease, an attempt of a Once, or a lead.
type Hold interface {
	// ValidUntil returns the time until which no other holder can have the lock.
	ValidUntil() time.Time
	// Context returns a context that ends with the hold.
	Context() context.Context
}

// Command is a program to run. It inherits all that this process has inherited.
type Command struct {
	// Path of the program.
	Path string
	// Args are its arguments, the name of the program first.
	Args []string
	// Env returns its environment. It is called right before the command starts.
	Env func() []string
	// Stdout and Stderr replace the streams of this process; nil inherits them.
	Stdout, Stderr *os.File
}

// Limits say when a command is ended. TERM goes to all its processes KillBefore the end of the lease, and KILL the
// Margin before it.
type Limits struct {
	// KillBefore is the time from TERM to KILL.
	KillBefore time.Duration
	// Margin is how long before the end of the lease KILL is sent. After a quarter of it the parent kills the supervisor, if that
	// has not done so: the rest is for what the supervisor has left.
	Margin time.Duration
	// MaxHold is how long the command may run until it gets TERM; 0 is no limit.
	MaxHold time.Duration
	// Least is what the lease must have left for the command to start, never less than KillBefore and Margin together.
	// A lease from a queue lasts only a few seconds until its first renewal, so the command would get TERM at once.
	Least time.Duration
	// AwaitAll waits for all descendants of a command that has ended. Otherwise they are ended too.
	AwaitAll bool
}

// Outcome is how a command ended.
type Outcome struct {
	// Stopped is why the command was ended, empty if it ended by itself.
	Stopped Reason
	status  syscall.WaitStatus
}

// Reason is why a command was ended.
type Reason string

// The reasons.
const (
	LeaseExpires Reason = "the lock could not be renewed"
	LeaseLost    Reason = "the lock was lost"
	HeldTooLong  Reason = "the command took longer than it may hold the lock"
	ParentKilled Reason = "holdfast was killed"
	signaled     Reason = "a signal has interrupted it" // only what the command has left behind: the command itself gets the signal
	leftBehind   Reason = "the command has left processes behind"
)

// Interrupted is the cause with which the context of a [Supervisor] ends when it receives a signal that no command will act on.
type Interrupted struct {
	// Signal is the one that was received. It is KILL if the parent has ended.
	Signal syscall.Signal
}

// Error returns the name of the signal.
func (e *Interrupted) Error() string { return fmt.Sprintf("interrupted by a signal: %v", e.Signal) }
