package permits

import (
	"context"
	"time"
)

// Contestant is a semaphore of a library.
type Contestant struct {
	Name string
	// Sends are the commands that its clients send: a server also counts the commands that scripts run.
	Sends []string
	Open  func(Config) (Process, error)
}

// Config says which semaphore a process uses.
type Config struct {
	Addr string // host and port of Redis, or of the relay before it
	Name string
	N    int           // permits
	TTL  time.Duration // of a permit whose holder has crashed; whole seconds
}

// Process is one process of a deployment, with connections of its own.
type Process interface {
	// Try asks once, for the caller with that number. It returns nil without an error if no permit is free. A caller has at
	// most one permit at a time, and no two processes share the number of a caller.
	Try(ctx context.Context, caller int) (Permit, error)
	// Acquire waits for a permit, as the documentation of the library says, until ctx ends.
	Acquire(ctx context.Context, caller int) (Permit, error)
	Close() error
}

// Permit was granted.
type Permit interface {
	// Valid returns true while its holder may believe in it, by all that the library tells.
	Valid() bool
	Release(ctx context.Context) error
}
