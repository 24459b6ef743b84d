package history

import "golang.org/x/sys/unix"

// Kind tells what an [Event] is.
type Kind string

// The kinds that workers tell of.
const (
	Up      Kind = "up"      // the process has begun
	Call    Kind = "call"    // an operation is asked for; it may never return
	Return  Kind = "return"  // it has come back, see Err
	Valid   Kind = "valid"   // the holder has looked at its lease: certain until Until
	End     Kind = "end"     // the lease's context has ended, see Err
	Probe   Kind = "probe"   // the server itself was asked about the lock
	Leaving Kind = "leaving" // the process begins to let go of all that it holds
	Left    Kind = "left"    // the process has closed all: Value goroutines too many
)

// The kinds that the others tell of.
const (
	Meta  Kind = "meta"  // what is run: Name is the topology, Until the TTL
	Fault Kind = "fault" // the nemesis begins something, see Row
	Heal  Kind = "heal"  // and ends it
	Calm  Kind = "calm"  // nothing is broken from here on, until the next fault
	Write Kind = "write" // the register was written to, see Refused
	Key   Kind = "key"   // found in Redis at the end: Value ms to live
	Final Kind = "final" // all is healed, for good; the workers continue for a while
)

// Event is something that happened. Times are in nanoseconds of the monotonic clock, which all processes of a host
// share and which no step of the wall clock moves.
type Event struct {
	At   int64  `json:"at"`
	Wall int64  `json:"wall,omitempty"` // µs of the wall clock, which the servers' clocks follow
	By   string `json:"by"`
	Kind Kind   `json:"kind"`

	// Call pairs a call, its return, and all that is said of the lease it brought. Unique per process.
	Call     int64    `json:"call,omitempty"`
	Op       string   `json:"op,omitempty"`
	Strategy string   `json:"strategy,omitempty"`
	Names    []string `json:"names,omitempty"`
	Shared   bool     `json:"shared,omitempty"`  // others may hold it too
	Reentry  bool     `json:"reentry,omitempty"` // of the lease that is held already
	Limit    int      `json:"limit,omitempty"`   // n of a semaphore
	Permits  int      `json:"permits,omitempty"` // that are taken of it
	Slot     int      `json:"slot,omitempty"`    // of the first of them
	Token    int64    `json:"token,omitempty"`
	Until    int64    `json:"until,omitempty"`
	Deadline int64    `json:"deadline,omitempty"` // of the context of the call
	Err      string   `json:"err,omitempty"`      // a class, see package worker; empty for success
	Detail   string   `json:"detail,omitempty"`
	Value    int64    `json:"value,omitempty"`
	Text     string   `json:"text,omitempty"` // what Once recorded

	// Of the register.
	Refused  bool `json:"refused,omitempty"`
	Unfenced bool `json:"unfenced,omitempty"`

	// Of the nemesis, and of what workers do to themselves: the row of the catalogue. Loses is a reason for which
	// the servers may forget who holds a lock; empty if they must not.
	Row   int    `json:"row,omitempty"`
	Name  string `json:"name,omitempty"`
	Loses string `json:"loses,omitempty"`
}

// Now reads the clock of [Event.At]. It asks the kernel, whatever package time has been made to say.
func Now() int64 { return read(unix.CLOCK_MONOTONIC) }

// Wall reads the wall clock of the host in microseconds.
func Wall() int64 { return read(unix.CLOCK_REALTIME) / 1000 }

func read(clock int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic(err) // both clocks are always there
	}
	return ts.Nano()
}
