package transport

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

// Command is one run of a script, from its arguments to its reply.
type Command struct {
	ctx        context.Context // for the hooks of the user's client, if it is sent by itself
	script     *Script
	Args       []any   // of the command; the keys begin at firstKey
	buffer     [16]any // for argv, if it has room
	keys       keyCount
	node       *node
	Ack        Ack            // of replicas; all commands of a queue want one, or none does
	sendAsking bool           // it goes where its slot is about to move
	OnSend     func()         // called when it is sent, if not nil
	connectCtx connectContext // while it is on one

	// When it is answered, done is called, or a value is sent on answered if done is nil.
	Done     func(*Command)
	answered chan struct{}

	state  atomic.Int32  // of the three below: a command is either sent or withdrawn, never both
	SentAt clock.Instant // read before it was sent, except on the direct path
	// repeated is true if it was sent a second time because the first had no answer in directTimeout. The first may
	// still arrive, whatever the answer to the second is.
	Repeated bool
	Reply    any     // nil if the script answers with numbers
	List     []int64 // if it does
	Err      error

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

// NewCommand returns the command that runs s with these keys and arguments. It does not keep the slices.
func NewCommand(s *Script, keys []string, args ...any) *Command {
	c := new(Command)
	c.Init(s, len(keys))
	for _, key := range keys {
		c.Args = append(c.Args, key)
	}
	c.Args = append(c.Args, args...)
	return c
}

// Init sets the script and the arguments of a new command; args begins with that many keys.
func (c *Command) Init(s *Script, keys int, args ...any) {
	c.ctx, c.script = context.Background(), s
	c.keys = keyCount{n: keys}
	c.Args = append(append(c.buffer[:0], evalsha, s.shaArg, &c.keys), args...)
}

// key returns the first key, which decides on the master.
func (c *Command) key() string {
	key, _ := c.Args[firstKey].(string)
	return key
}

// deliver notifies the caller of the answer.
func (c *Command) deliver() {
	if c.Done != nil {
		c.Done(c)
		return
	}
	c.answered <- struct{}{}
}

// withdraw cancels a command that has not been sent. It returns false if it was sent.
func (c *Command) withdraw() bool { return c.state.CompareAndSwap(commandQueued, commandWithdrawn) }

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
type buildCmd = func(c *Command) redis.Cmder

// byHash runs the script with EVALSHA, byText with EVAL: for a server that does not know the script, for instance after
// SCRIPT FLUSH, a restart or a failover.
func byHash(c *Command) redis.Cmder { return c.prepare(c.Args) }

func byText(c *Command) redis.Cmder {
	c.keys.written = false                                        // the server has refused the hash
	args := append([]any{"eval", c.script.Source}, c.Args[2:]...) // hooks of the user's client may still look at the other
	return c.prepare(args)
}

// prepare makes the command; the context is given again when it is sent.
func (c *Command) prepare(args []any) redis.Cmder {
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
func (c *Command) readResult() {
	if c.script.integers {
		c.List, c.Err = c.intsCmd.Result()
	} else {
		c.Reply, c.Err = c.cmd.Result()
	}
	c.Err = c.markUnwritten(unwrapScript(c.Err))
}

// timeoutError returns the error of a command. A timeout of go-redis becomes ErrNotAnswered or ErrNotSent if ctx has
// ended, or its deadline has passed.
//
// Why: with ContextTimeoutEnabled, go-redis bounds commands by the context too, and its timeout may come before the end
// of the context is noticed. Otherwise a busy lock would look like an outage.
func (c *Command) timeoutError(ctx context.Context) error {
	if c.Err == nil {
		return nil
	}
	var timeout net.Error
	if !errors.As(c.Err, &timeout) || !timeout.Timeout() {
		return c.Err
	}
	end, ends := ctx.Deadline()
	switch over := ctx.Err() != nil || ends && !time.Now().Before(end); {
	case !over:
		return c.Err
	case c.keys.written:
		return ErrNotAnswered
	}
	return ErrNotSent
}

// markUnwritten wraps err in an unwrittenError if the command was never written to a connection, and so has not run.
func (c *Command) markUnwritten(err error) error {
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
