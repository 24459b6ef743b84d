package core

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one script on its way to Redis.
type call struct {
	ctx        context.Context // travels with a lone call, for the hooks of the user's client
	script     *script
	argv       []any   // of the command; the keys begin at firstKey
	space      [16]any // for argv, if it has room
	keys       keyCount
	way        *node
	ack        ack            // of replicas; all calls of a lane want one, or none does
	asking     bool           // it goes where its slot is about to move
	board      func()         // called when it leaves, if not nil
	connectCtx connectContext // while it is on one

	// When it is answered, one of these is told.
	done     func(*call)
	answered chan struct{}

	state  atomic.Int32 // of the three below: a call is either sent or withdrawn, never both
	sentAt instant      // read before it was sent, except on the direct path
	// repeated tells that it was sent a second time, because the first had no answer soon: that one may arrive yet,
	// whatever the second has come to.
	repeated bool
	reply    any     // nil if the script answers with numbers
	list     []int64 // if it does
	err      error

	command attempt
	listing listing
}

const (
	callQueued = iota
	callSent
	callWithdrawn
)

// firstKey is where the keys begin in the arguments of EVALSHA: behind its name, the script, and their number.
const firstKey = 3

// newCall keeps nothing of keys and args themselves.
func newCall(s *script, keys []string, args ...any) *call {
	c := new(call)
	c.ask(s, len(keys))
	for _, key := range keys {
		c.argv = append(c.argv, key)
	}
	c.argv = append(c.argv, args...)
	return c
}

// ask says what a new call is for; argv begins with so many keys.
func (c *call) ask(s *script, keys int, argv ...any) {
	c.ctx, c.script = context.Background(), s
	c.keys = keyCount{n: keys}
	c.argv = append(append(c.space[:0], evalsha, s.shaArg, &c.keys), argv...)
}

// key returns the first key, by which the call finds its way.
func (c *call) key() string {
	key, _ := c.argv[firstKey].(string)
	return key
}

// land tells that the call is answered.
func (c *call) land() {
	if c.done != nil {
		c.done(c)
		return
	}
	c.answered <- struct{}{}
}

// mark counts in a hold a request that was repeated. It writes only then: the servers of a Redlock, where none is, are
// asked for one hold side by side.
func (c *call) mark(h *hold) {
	if c.repeated {
		h.unanswered++
	}
}

// withdraw takes back a call that has not been sent; it reports false if it is too late.
func (c *call) withdraw() bool { return c.state.CompareAndSwap(callQueued, callWithdrawn) }

// attempt is one command on its way to Redis. The client's own retries are switched off for it (go-redis
// re-sends after a lost reply, up to four executions, without telling): whether to ask again, and for how
// long, is decided here, by the outcome and by what the caller has left to wait.
type attempt struct{ redis.Cmd }

// NoRetry is asked by go-redis before it re-sends a command.
func (*attempt) NoRetry() bool { return true }

// listing is an attempt that is answered with a list of integers, which are most of the answers to locks, and take
// less memory this way.
type listing struct{ redis.IntSliceCmd }

// NoRetry is that of attempt.
func (*listing) NoRetry() bool { return true }

func newAttempt(args ...any) *attempt { return &attempt{*redis.NewCmd(context.Background(), args...)} }

// verb is the way to ask for a script.
type verb = func(c *call) redis.Cmder

// byHash asks for the script by its hash, byText by its text, for a server that does not know it (yet, or any
// more: SCRIPT FLUSH, restart, failover).
func byHash(c *call) redis.Cmder { return c.prepare(c.argv) }

func byText(c *call) redis.Cmder {
	c.keys.written = false                                        // the server has refused the hash
	argv := append([]any{"eval", c.script.source}, c.argv[2:]...) // hooks of the user's client may still look at the other
	return c.prepare(argv)
}

// prepare makes the command; the context is given again when it is sent.
func (c *call) prepare(argv []any) redis.Cmder {
	if c.script.lists {
		c.listing.IntSliceCmd = *redis.NewIntSliceCmd(context.Background(), argv...)
		c.listing.SetFirstKeyPos(firstKey)
		return &c.listing
	}
	c.command.Cmd = *redis.NewCmd(context.Background(), argv...)
	c.command.SetFirstKeyPos(firstKey)
	return &c.command
}

// take takes in what the command has come to.
func (c *call) take() {
	if c.script.lists {
		c.list, c.err = c.listing.Result()
	} else {
		c.reply, c.err = c.command.Result()
	}
	c.err = c.unlessWritten(unwrapScript(c.err))
}

// cutShort returns the error of a call, or errNotAnswered if that is the end of the caller's time: go-redis bounds commands
// by the context too, with ContextTimeoutEnabled, and its timeout may come before the end of the context is noticed.
// Otherwise a busy lock would look like an outage.
func (c *call) cutShort(ctx context.Context) error {
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

// unlessWritten marks an error as that of a command which was never written to a connection, and so has not run.
func (c *call) unlessWritten(err error) error {
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
