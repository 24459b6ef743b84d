// Package contestant puts the lock libraries that are compared behind one small interface, each used as its own
// documentation recommends, with the same TTL and, where it can be set, the same number of connections.
package contestant

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/bench/shape"
)

const (
	// TTL is the TTL of every lock.
	TTL = shape.TTL
	// Connections is the size of every pool of go-redis that can be set. Its default of ten per processor would make
	// 64 goroutines wait for connections on small machines.
	Connections = 64
)

// ErrTaken is returned by contestants that cannot wait.
var ErrTaken = errors.New("contestant: taken")

// Contestant is a way to lock names.
type Contestant struct {
	Name   string
	Family string // contestants of one family are one peer
	Module string // of Go, in which it is
	// Limit marks what is not a lock library but what one cannot be much faster than.
	Limit bool
	// Waits tells that Lock waits for a taken name.
	Waits bool
	// Uncontended tells that it takes part where nobody waits: contestants that differ only in how they wait do so once.
	Uncontended bool
	// Servers is how many it needs.
	Servers int
	// Sends are the commands that it sends: the server counts those that scripts run under their names as well.
	Sends []string
	// Lacks says what it does not do of what holdfast does, for the documentation.
	Lacks string
	Open  func(addrs []string) (Session, error)
}

// Session is a contestant that is connected: one process of a deployment.
type Session interface {
	// Pair locks and unlocks a free name.
	Pair(ctx context.Context, name string) error
	// Lock waits for the lock if the contestant can.
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close() error
}

// pair is Pair for sessions to which nothing is cheaper than Lock.
func pair(ctx context.Context, s Session, name string) error {
	unlock, err := s.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock(ctx)
}

func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: Connections})
}
