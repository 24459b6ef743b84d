// Package election lets an election of holdfast and one by hand elect leaders of the same processes under the same faults,
// and counts leaders.
package election

import (
	"context"
	"time"
)

// Contestant is a way to elect a leader.
type Contestant struct {
	Name string
	// Sends are the commands that its clients send: a server also counts the commands that scripts run.
	Sends []string
	Open  func(Config) (Candidate, error)
}

// Config says in which election a process is a candidate.
type Config struct {
	Addr string // host and port of Redis, or of the relay before it
	Name string
	TTL  time.Duration // of a lead that is not renewed
}

// Candidate is one process, with connections of its own.
type Candidate interface {
	// Campaign waits until this process is elected, or ctx ends. Until ctx ends, it continues after errors.
	Campaign(ctx context.Context) (Lead, error)
	Close() error
}

// Lead is one term of a leader.
type Lead interface {
	// Term should be greater than the terms of all leaders before.
	Term() int64
	// Valid returns true while the process believes that it leads.
	Valid() bool
	// Resign ends leadership.
	Resign(ctx context.Context) error
}
