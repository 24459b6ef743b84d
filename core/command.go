package core

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// command is one run of a script, from its arguments to its reply.
type command struct {
	ctx        context.Context // for the hooks of the user's client, if it is sent by itself
	script     *script
	args       []any   // of the command; the keys begin at firstKey
	buffer     [16]any // for argv, if it has room
	keys       keyCount
	node       *node
	ack        ack            // of replicas; all commands of a queue want one, or none does
	sendAsking bool           // it goes where its slot is about to move
	onSend     func()         // called when it is sent, if not nil
	connectCtx connectContext // while it is on one

	// When it is answered, done is called, or a value is sent on answered if done is nil.
	done     func(*command)
	answered chan struct{}

	state  atomic.Int32  // of the three below: a command is either sent or withdrawn, never both
	sentAt clock.Instant // read before it was sent, except on the direct path
	// repeated is true if it was sent a second time because the first had no answer in directTimeout. The first may
	// still arrive, whatever the answer to the second is.
	repeated bool
	reply    any     // nil if the script answers with numbers
	list     []int64 // if it does
	err      error

	cmd     singleTryCmd
	intsCmd singleTryIntsCmd
}

const (
	commandQueued = iota
	commandSent
	commandWithdrawn
)

// firstKey is where the keys begin in the arguments of EVALSHA: behind its name, the script, and their number.
const firstKey = 3

// newCall keeps nothing of keys and args themselves.
func newCommand(s *script, keys []string, args ...any) *command {
	c := new(command)
	c.init(s, len(keys))
	for _, key := range keys {
		c.args = append(c.args, key)
	}
	c.args = append(c.args, args...)
	return c
}

// init sets the script and the arguments of a new command; args begins with that many keys.
func (c *command) init(s *script, keys int, args ...any) {
	c.ctx, c.script = context.Background(), s
	c.keys = keyCount{n: keys}
	c.args = append(append(c.buffer[:0], evalsha, s.shaArg, &c.keys), args...)
}

// key returns the first key, which decides on the master.
func (c *command) key() string {
	key, _ := c.args[firstKey].(string)
	return key
}

// deliver notifies the caller of the answer.
func (c *command) deliver() {
	if c.done != nil {
		c.done(c)
		return
	}
	c.answered <- struct{}{}
}

// countUnanswered counts a repeated request in its hold. It writes to the hold only then. Why: the requests of a Redlock
// to its servers share one hold and run concurrently, and are never repeated.
func (c *command) countUnanswered(h *hold) {
	if c.repeated {
		h.unanswered++
	}
}

// withdraw cancels a command that has not been sent. It returns false if it was sent.
func (c *command) withdraw() bool { return c.state.CompareAndSwap(commandQueued, commandWithdrawn) }

// singleTryCmd is a [redis.Cmd] without the retries of go-redis. Why: after a lost reply go-redis sends a command again,
// up to four executions in all, without notice. This package decides itself whether and for how long to retry: by the
// outcome, and by the time that the caller has left.
type singleTryCmd struct{ redis.Cmd }

// NoRetry is asked by go-redis before it re-sends a command.
func (*singleTryCmd) NoRetry() bool { return true }

// singleTryIntsCmd is singleTryCmd for a reply that is a list of integers. Most replies to locks are, and take less
// memory this way.
type singleTryIntsCmd struct{ redis.IntSliceCmd }

// NoRetry is that of singleTryCmd.
func (*singleTryIntsCmd) NoRetry() bool { return true }

func newSingleTryCmd(args ...any) *singleTryCmd {
	return &singleTryCmd{*redis.NewCmd(context.Background(), args...)}
}

// buildCmd makes the go-redis command that runs a script.
type buildCmd = func(c *command) redis.Cmder

// byHash runs the script with EVALSHA, byText with EVAL: for a server that does not know the script, for instance after
// SCRIPT FLUSH, a restart or a failover.
func byHash(c *command) redis.Cmder { return c.prepare(c.args) }

func byText(c *command) redis.Cmder {
	c.keys.written = false                                        // the server has refused the hash
	args := append([]any{"eval", c.script.source}, c.args[2:]...) // hooks of the user's client may still look at the other
	return c.prepare(args)
}

// prepare makes the command; the context is given again when it is sent.
func (c *command) prepare(args []any) redis.Cmder {
	if c.script.integers {
		c.intsCmd.IntSliceCmd = *redis.NewIntSliceCmd(context.Background(), args...)
		c.intsCmd.SetFirstKeyPos(firstKey)
		return &c.intsCmd
	}
	c.cmd.Cmd = *redis.NewCmd(context.Background(), args...)
	c.cmd.SetFirstKeyPos(firstKey)
	return &c.cmd
}

// readResult sets the reply or the error of the command from its go-redis command.
func (c *command) readResult() {
	if c.script.integers {
		c.list, c.err = c.intsCmd.Result()
	} else {
		c.reply, c.err = c.cmd.Result()
	}
	c.err = c.markUnwritten(unwrapScript(c.err))
}

// timeoutError returns the error of a command. A timeout of go-redis becomes errNotAnswered or errNotSent if ctx has
// ended, or its deadline has passed.
//
// Why: with ContextTimeoutEnabled, go-redis bounds commands by the context too, and its timeout may come before the end
// of the context is noticed. Otherwise a busy lock would look like an outage.
func (c *command) timeoutError(ctx context.Context) error {
	if c.err == nil {
		return nil
	}
	var timeout net.Error
	if !errors.As(c.err, &timeout) || !timeout.Timeout() {
		return c.err
	}
	end, ends := ctx.Deadline()
	switch over := ctx.Err() != nil || ends && !time.Now().Before(end); {
	case !over:
		return c.err
	case c.keys.written:
		return errNotAnswered
	}
	return errNotSent
}

// markUnwritten wraps err in an unwrittenError if the command was never written to a connection, and so has not run.
func (c *command) markUnwritten(err error) error {
	if err == nil || c.keys.written || replied(err) {
		return err
	}
	return &unwrittenError{err}
}

// keyCount is the number of keys as an argument of EVALSHA. go-redis encodes it only when it writes the command to a
// connection. So it tells whether the server can have seen the command: not if a hook has refused it, a limiter, or the
// connection pool. It costs no allocation.
type keyCount struct {
	n       int
	written bool
	digits  [4]byte
}

// MarshalBinary is called by go-redis when it writes the command.
func (k *keyCount) MarshalBinary() ([]byte, error) {
	k.written = true
	return strconv.AppendInt(k.digits[:0], int64(k.n), 10), nil
}

// String is for hooks that print commands.
func (k *keyCount) String() string { return strconv.Itoa(k.n) }
