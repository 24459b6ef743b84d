package core

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// WithReplicaAck makes a grant, a renewal or Extend count only once n replicas have acknowledged it within the
// timeout. Then a failover to one of these replicas loses no grant. Set n to all replicas that may be promoted, or to
// one if the most advanced replica is always promoted, as Sentinel does among replicas of the same priority.
//
// If too few replicas acknowledge a grant, the client takes it back. TryLock then returns [ErrNotReplicated], which is
// also [ErrUnavailable]; Lock retries for some seconds, as in an outage. If too few acknowledge a renewal, ValidUntil
// does not move, because the next master may know only the previous renewal. The client retries while the lease is
// valid.
//
// Each of these commands costs a round trip to the replicas, even one that is answered "held". Commands that wait for
// replicas share the waiting, among themselves only. Whole milliseconds, shorter than the TTL: choose it far shorter,
// so that a renewal has time for a second try. The client has to be a [redis.Client], even one for Sentinel, or a
// [redis.ClusterClient]. A [Redlock] refuses the option. Defaults to no acknowledgement.
func WithReplicaAck(n int, timeout time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		switch {
		case n < 1:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): at least 1 replica is needed", n, timeout))
		case timeout <= 0:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): the timeout has to be positive", n, timeout))
		case timeout%time.Millisecond != 0:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): Redis counts in whole milliseconds", n, timeout))
		}
		c.ack = transport.Ack{Replicas: n, Timeout: timeout}
	})
}

// checkAck finds what is wrong with a timeout among the other options, and with the clients that should wait.
func checkAck(a transport.Ack, ttl time.Duration, rdbs []redis.UniversalClient) error {
	if !a.Wanted() {
		return nil
	}
	if len(rdbs) > 1 {
		return invalidOption("WithReplicaAck: not with a Redlock, whose masters have no replicas")
	}
	if a.Timeout >= ttl {
		return invalidOption("WithReplicaAck(%d, %v): a timeout shorter than the TTL of %v is needed",
			a.Replicas, a.Timeout, ttl)
	}
	for _, rdb := range rdbs {
		switch rdb.(type) {
		case *redis.Client, *redis.ClusterClient:
		default:
			// It may send WAIT to another server than the command before.
			return invalidOption("WithReplicaAck: not with a %T, only with *redis.Client and *redis.ClusterClient", rdb)
		}
	}
	return nil
}

// notReplicated reports whether too few replicas have acknowledged a command.
func notReplicated(err error) bool {
	var missing *transport.AckError
	return errors.As(err, &missing)
}

// publicAck returns err with an transport.AckError as the [NotReplicatedError] of the API.
func publicAck(err error) error {
	var missing *transport.AckError
	if errors.As(err, &missing) {
		return &NotReplicatedError{Acknowledged: missing.Acknowledged, Wanted: missing.Wanted}
	}
	return err
}
