package core

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// A command to Redis ends in one of three ways, and they must not be mixed up: it did not run, nobody knows
// whether it ran, or it ran (and perhaps failed halfway, since Redis does not roll scripts back).

var (
	errNotSent     = errors.New("not sent before the wait ended")
	errNotAnswered = errors.New("not answered before the wait ended")
)

// notRun lists the replies with which a server refuses a command before running it and which pass with time.
var notRun = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY",
	"MOVED", "ASK", "NOSCRIPT", "max number of clients",
}

// transient reports whether err says nothing about the lock: the connection failed, or the server is not
// ready to answer. The same command may be sent again.
func transient(err error) bool {
	if err == nil || errors.Is(err, redis.ErrClosed) {
		return false
	}
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return refused(err)
	}
	return true
}

// didNotRun reports whether err proves that the command granted nothing. The scripts meet a key of another type
// before they write to the lock.
func didNotRun(err error) bool {
	var dial *net.OpError
	switch {
	case err == nil:
		return false
	case errors.Is(err, errNotSent), errors.Is(err, redis.ErrClosed),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return true
	case errors.As(err, &dial) && dial.Op == "dial":
		return true
	}
	return refused(err) || redis.HasErrorPrefix(err, "WRONGTYPE")
}

func refused(err error) bool {
	for _, prefix := range notRun {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// failure is what a caller gets to see of a command's error: with the key that it is about, and recognizable as
// an outage if it was one, with the end of ctx if that came first.
func failure(ctx context.Context, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %q: %w", ErrWrongType, key, err)
	case !transient(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, err, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
