package core

import (
	"errors"
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
	if err == nil || errors.Is(err, redis.ErrClosed) || errors.Is(err, ErrWrongType) {
		return false
	}
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return refused(err)
	}
	return true
}

// didNotRun reports whether err proves that the command changed nothing.
func didNotRun(err error) bool {
	var dial *net.OpError
	switch {
	case err == nil:
		return false
	case errors.Is(err, errNotSent), errors.Is(err, ErrWrongType), errors.Is(err, redis.ErrClosed),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return true
	case errors.As(err, &dial) && dial.Op == "dial":
		return true
	}
	return refused(err)
}

func refused(err error) bool {
	for _, prefix := range notRun {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
