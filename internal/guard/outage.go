package guard

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// notServing are the answers with which a server says that it serves no client at the moment: it starts, has lost its
// master or its Cluster, is no master any more, or has too many connections. They pass with the outage. Requests cannot
// cause them, unlike BUSY, which a script on the keys of requests may bring about.
//
// MOVED, ASK and READONLY come with [core.ErrUnavailable] only if they pass. Otherwise they are [core.ErrMisconfigured].
var notServing = []string{
	"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "READONLY", "max number of clients",
}

// IsOutage reports whether err means that Redis could not be asked, which is all that opens a guard that fails open.
//
// Why: any other answer may last, or may be what a client has brought about. With a full Redis (OOM, MISCONF), too many open files
// of this process, or no free connection in its pool, one user's requests would open the gate for all. What does not speak the
// protocol of Redis is no Redis that is away. A missing right, a wrong password or the wrong kind of
// client would leave it open until it is noticed. NOREPLICAS and [core.ErrNotReplicated] are the safety that was asked for. Of
// [core.ErrUndecided] Redis has answered, and the database has not.
func IsOutage(err error) bool {
	return errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrNotReplicated) && !errors.Is(err, core.ErrMisconfigured) &&
		!errors.Is(err, core.ErrUndecided) &&
		!exhausted(err) && !notRedis(err) && !refusedByRedis(err)
}

// exhausted reports whether this process has no connection left, because its pool is in use or it has too many open files.
func exhausted(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notRedis reports whether what has answered does not speak the protocol of Redis. go-redis has no type for these errors.
func notRedis(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redis: can't parse ") || strings.Contains(text, "redis: invalid reply")
}

// refusedByRedis reports whether a server has answered with an error other than [notServing]. It looks at the answers
// of all servers, if there are several.
func refusedByRedis(err error) bool {
	switch e := err.(type) {
	case redis.Error:
		return !slices.ContainsFunc(notServing, func(prefix string) bool { return redis.HasErrorPrefix(e, prefix) })
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), refusedByRedis)
	case interface{ Unwrap() error }:
		return refusedByRedis(e.Unwrap())
	}
	return false
}
