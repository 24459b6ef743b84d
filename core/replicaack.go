package core

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
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
		c.ack = ack{replicas: n, timeout: timeout}
	})
}

// ack is how many replicas have to acknowledge a command's writes, and how long they have for it. The zero value asks
// for none.
type ack struct {
	replicas int
	timeout  time.Duration
}

func (a ack) wanted() bool { return a.replicas > 0 }

// and returns what satisfies both.
func (a ack) and(b ack) ack {
	return ack{replicas: max(a.replicas, b.replicas), timeout: max(a.timeout, b.timeout)}
}

// strictestAck returns what satisfies all commands of a batch.
func strictestAck(batch []*command) ack {
	var all ack
	for _, c := range batch {
		all = all.and(c.ack)
	}
	return all
}

// check finds what is wrong with a timeout among the other options, and with the clients that should wait.
func (a ack) check(ttl time.Duration, rdbs []redis.UniversalClient) error {
	if !a.wanted() {
		return nil
	}
	if len(rdbs) > 1 {
		return invalidOption("WithReplicaAck: not with a Redlock, whose masters have no replicas")
	}
	if a.timeout >= ttl {
		return invalidOption("WithReplicaAck(%d, %v): a timeout shorter than the TTL of %v is needed",
			a.replicas, a.timeout, ttl)
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

// sendAcked sends a batch and WAIT behind it. That has to take the same connection, because WAIT is about what its own
// connection has written: on another one, whose last write replicas know, it says yes at once. One WAIT serves the
// whole batch.
func (e *executor) sendAcked(batch []*command) {
	cluster := e.nodes.cluster
	if cluster == nil {
		rdb, _ := e.rdb.(*redis.Client)
		sendPipelined(batch, pipelineWithWait(rdb, batch))
		return
	}
	// WAIT has no key by which a ClusterClient would find the master.
	for master, part := range byMaster(cluster, batch) {
		sendPipelined(part, pipelineWithWait(master, part))
		for addr, asked := range askRedirects(part) {
			if master := masterAt(cluster, addr); master != nil {
				sendPipelined(asked, pipelineWithWait(master, asked))
			}
		}
	}
}

// askRedirects returns the commands that were answered with ASK, by the address to which it redirects: their slot is
// being migrated, and their key already was.
func askRedirects(batch []*command) map[string][]*command {
	var redirected map[string][]*command
	for _, c := range batch {
		if c.err == nil || !redis.HasErrorPrefix(c.err, "ASK") {
			continue
		}
		if redirected == nil {
			redirected = make(map[string][]*command)
		}
		words := strings.Fields(c.err.Error())
		addr := words[len(words)-1]
		c.sendAsking = true
		redirected[addr] = append(redirected[addr], c)
	}
	return redirected
}

// masterAt returns the client of the master at that address, nil if go-redis does not know it. It asks the Cluster.
func masterAt(cluster *redis.ClusterClient, addr string) *redis.Client {
	var found atomic.Pointer[redis.Client]
	_ = cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
		if master.Options().Addr == addr {
			found.Store(master)
		}
		return nil
	})
	return found.Load()
}

// byMaster divides a batch by the masters of the keys. It may ask the Cluster for them. Commands whose master is not
// known get the error.
func byMaster(cluster *redis.ClusterClient, batch []*command) map[*redis.Client][]*command {
	parts := make(map[*redis.Client][]*command, 1)
	for _, c := range batch {
		master, err := cluster.MasterForKey(context.Background(), c.key())
		if err != nil {
			c.err = err
			continue
		}
		parts[master] = append(parts[master], c)
	}
	return parts
}

// pipelineWithWait returns a function that sends commands of a batch in a pipeline with WAIT behind them. The read
// timeout of its connection has room for the timeout of WAIT. Why: after a read timeout the connection is closed, and
// the outcome of all commands is unknown.
func pipelineWithWait(rdb *redis.Client, batch []*command) func([]*command, buildCmd) {
	conn, timeout := piper(rdb), strictestAck(batch).timeout
	if limit := rdb.Options().ReadTimeout; limit > 0 && timeout > limit/2 {
		conn = withTimeout(rdb, limit+timeout)
	}
	return func(batch []*command, command buildCmd) {
		all := strictestAck(batch)
		wait := newSingleTryCmd("wait", all.replicas, milliseconds(all.timeout))
		pipeline(conn, batch, command, wait)
		replicas, err := wait.Int()
		for _, c := range batch {
			c.checkAck(replicas, err)
		}
	}
}

// checkAck sets the error of a successful command if too few replicas have acknowledged what was sent up to it. The reply
// to an unsuccessful command stays: a refusal is true whatever the replicas know.
func (c *command) checkAck(replicas int, err error) {
	switch {
	case c.err != nil || !c.successful():
	case err != nil && redis.HasErrorPrefix(err, "UNBLOCKED"): // the master has become a replica
		c.err = &NotReplicatedError{Wanted: c.ack.replicas}
	case err != nil:
		c.err = &waitError{err}
	case replicas < c.ack.replicas:
		c.err = &NotReplicatedError{Acknowledged: replicas, Wanted: c.ack.replicas}
	}
}

// waitError is the error of a WAIT behind a script that has succeeded.
type waitError struct{ err error }

func (e *waitError) Error() string { return "WAIT: " + e.err.Error() }
func (e *waitError) Unwrap() error { return e.err }

// outcome is that of the script, which has run.
func (e *waitError) outcome() outcome {
	if replied(e.err) {
		return failed
	}
	return unknown
}

// successful reports whether a script says that it has written what it was for: it answers 1, alone or with more behind
// it, or 2: renewed in part, released in part, or recorded anew.
func (c *command) successful() bool {
	reply := c.reply
	if list, ok := reply.([]any); ok && len(list) > 0 {
		reply = list[0]
	} else if len(c.list) > 0 {
		reply = c.list[0]
	}
	return reply == int64(1) || reply == int64(2)
}
