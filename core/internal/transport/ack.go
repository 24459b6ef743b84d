package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// strictestAck returns the least Ack that satisfies all commands of a batch.
func strictestAck(batch []*Command) Ack {
	var ack Ack
	for _, c := range batch {
		ack.Replicas, ack.Timeout = max(ack.Replicas, c.Ack.Replicas), max(ack.Timeout, c.Ack.Timeout)
	}
	return ack
}

// AckError says that too few replicas have acknowledged a command. The master has executed the command.
type AckError struct{ Acknowledged, Wanted int }

// Error returns how many replicas have acknowledged, and how many had to.
func (e *AckError) Error() string {
	return fmt.Sprintf("acknowledged by %d of %d replicas", e.Acknowledged, e.Wanted)
}

// Unacknowledged returns true if err says that too few replicas have acknowledged a command.
func Unacknowledged(err error) bool {
	var missing *AckError
	return errors.As(err, &missing)
}

// sendAcked sends a batch, and WAIT behind it on the same connection. One WAIT serves the whole batch.
//
// It must be the same connection, because WAIT counts the replicas that know the last write of its own connection. On another
// connection, whose last write the replicas know already, WAIT would succeed at once.
func (e *Executor) sendAcked(batch []*Command) {
	cluster := e.Nodes.cluster
	if cluster == nil {
		rdb, _ := e.Client.(*redis.Client)
		sendPipelined(batch, e.pipelineWithWait(rdb, batch))
		return
	}
	// A ClusterClient cannot send WAIT: it has no key by which go-redis would find the master.
	for master, part := range byMaster(cluster, batch) {
		sendPipelined(part, e.pipelineWithWait(master, part))
		for addr, asked := range askRedirects(part) {
			if master := masterAt(cluster, addr); master != nil {
				sendPipelined(asked, e.pipelineWithWait(master, asked))
			}
		}
	}
}

// askRedirects returns the commands that were answered with ASK, by the address in that answer. Their slot is being
// migrated to the master at that address, and their key already was. They must be sent there behind ASKING.
func askRedirects(batch []*Command) map[string][]*Command {
	var redirected map[string][]*Command
	for _, c := range batch {
		if c.Err == nil || !hasCode(c.Err, "ASK") {
			continue
		}
		if redirected == nil {
			redirected = make(map[string][]*Command)
		}
		words := strings.Fields(c.Err.Error())
		addr := words[len(words)-1]
		c.sendAsking = true
		redirected[addr] = append(redirected[addr], c)
	}
	return redirected
}

// masterAt returns the client of the master at that address. It returns nil if go-redis does not know that master. It may
// ask the Cluster for the masters.
func masterAt(cluster *redis.ClusterClient, addr string) *redis.Client {
	var client atomic.Pointer[redis.Client]
	_ = cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
		if master.Options().Addr == addr {
			client.Store(master)
		}
		return nil
	})
	return client.Load()
}

// byMaster divides a batch by the masters of the keys. It may ask the Cluster for the masters. A command whose master is
// not known gets that error, and is in no part.
func byMaster(cluster *redis.ClusterClient, batch []*Command) map[*redis.Client][]*Command {
	parts := make(map[*redis.Client][]*Command, 1)
	for _, c := range batch {
		master, err := cluster.MasterForKey(context.Background(), c.key())
		if err != nil {
			c.Err = err
			continue
		}
		parts[master] = append(parts[master], c)
	}
	return parts
}

// pipelineWithWait returns a function that sends commands of a batch in a pipeline with WAIT behind them. The read timeout of
// its connection is longer than the timeout of WAIT, because after a read timeout the connection is closed, and the outcome of
// all commands is unknown.
func (e *Executor) pipelineWithWait(rdb *redis.Client, batch []*Command) func([]*Command, buildCmd) {
	patient := bare(rdb)
	if limit, timeout := readTimeout(rdb.Options()), strictestAck(batch).Timeout; limit > 0 && timeout > limit/2 {
		patient = rdb.WithTimeout(limit + timeout)
	}
	conn := redirect(rdb, patient, nil, e.die)
	return func(batch []*Command, command buildCmd) {
		ack := strictestAck(batch)
		wait := newSingleTryCmd("wait", ack.Replicas, ack.Timeout.Milliseconds())
		pipeline(conn, batch, command, wait)
		replicas, err := wait.Int()
		for _, c := range batch {
			c.checkAck(replicas, err)
		}
	}
}

// checkAck sets the error of a successful command if too few replicas have acknowledged the batch, or if WAIT has failed with
// err. An unsuccessful command keeps its reply, because a refusal is true whatever the replicas know.
func (c *Command) checkAck(replicas int, err error) {
	switch {
	case c.Err != nil || !Succeeded(c.Reply):
	case err != nil && hasCode(err, "UNBLOCKED"): // the master has become a replica
		c.Err = &AckError{Wanted: c.Ack.Replicas}
	case err != nil:
		c.Err = &waitError{err}
	case replicas < c.Ack.Replicas:
		c.Err = &AckError{Acknowledged: replicas, Wanted: c.Ack.Replicas}
	}
}

// waitError is the error of a WAIT behind a script that has succeeded. So the script is never reported as not executed.
type waitError struct{ err error }

func (e *waitError) Error() string { return "WAIT: " + e.err.Error() }
func (e *waitError) Unwrap() error { return e.err }

// Outcome returns Failed if the server has answered, because the script has run. It returns Unknown otherwise, because the
// replicas may yet acknowledge.
func (e *waitError) Outcome() Outcome {
	if Replied(e.err) {
		return Failed
	}
	return Unknown
}

// LastStatus is not less than any status that a script replies. Greater numbers are fencing tokens.
const LastStatus = 255

// Succeeded returns true if the reply says that the script has written what it was sent for. Such a reply is 1, 2, 5 or a token,
// or a list that begins so. The reply 2 means renewed in part, released in part, or recorded anew. The reply 5 means renewed in part,
// see lua/lock/renew.lua of package script.
func Succeeded(reply any) bool {
	if list, ok := reply.([]any); ok && len(list) > 0 {
		reply = list[0]
	}
	status, _ := reply.(int64)
	return status == 1 || status == 2 || status == 5 || status > LastStatus
}
