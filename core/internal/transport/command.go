package transport

import (
	"context"
	"embed"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// Command is one run of a script, from its arguments to its reply. It is used once. Its fields must not be changed between
// the submission and the answer.
type Command struct {
	ctx        context.Context // for the hooks of the user's client, if the command is sent in no batch
	script     *Script
	Args       []any   // of EVALSHA; the keys begin at firstKey
	buffer     [16]any // the memory of Args, unless there are more
	keys       keyCount
	node       *node
	Ack        Ack            // of replicas; in one queue all commands want one, or none does
	sendAsking bool           // true if ASKING has to be sent before the command
	OnSend     func()         // called when the command is sent in a batch; may be nil
	connectCtx connectContext // on the direct path: what ctx refers to, see connectDeadline

	// Done is called when the command is answered, on a goroutine of the executor. If Done is nil, a value is sent on
	// answered.
	Done     func(*Command)
	answered chan struct{}

	state  atomic.Int32      // commandQueued, commandSent or commandWithdrawn
	SentAt keepalive.Instant // read before the command was sent; zero on the direct path
	// Repeated is true if the command was sent a second time because the first had no answer in directTimeout. The first
	// may still arrive, whatever the answer to the second is.
	Repeated bool
	Reply    any
	Err      error // nil if the script has returned a reply

	cmd singleTryCmd
}

// Ack is how many replicas have to acknowledge a command's writes, and how long they have for it. The zero value asks
// for none.
type Ack struct {
	Replicas int
	Timeout  time.Duration // of WAIT, which comes on top of the time for the command itself
}

// Wanted returns true if at least one replica has to acknowledge.
func (a Ack) Wanted() bool { return a.Replicas > 0 }

// And returns the least Ack that satisfies both: the greater number of replicas, and the longer timeout.
func (a Ack) And(b Ack) Ack {
	return Ack{Replicas: max(a.Replicas, b.Replicas), Timeout: max(a.Timeout, b.Timeout)}
}

// States of a command in a batch queue. Both changes are from commandQueued: a command is sent or withdrawn, never both.
const (
	commandQueued = iota
	commandSent
	commandWithdrawn
)

// firstKey is the index of the first key in the arguments of EVALSHA. Before it are the name of the command, the hash of
// the script and the number of keys.
const firstKey = 3

// NewCommand returns the command that runs s with these keys and arguments. It copies both slices. There must be a key.
func NewCommand(s *Script, keys []string, args ...any) *Command {
	c := new(Command)
	c.Init(s, len(keys))
	for _, key := range keys {
		c.Args = append(c.Args, key)
	}
	c.Args = append(c.Args, args...)
	return c
}

// Init sets the script and the arguments of a new command. The first args are the keys, and keys is their number. Why beside
// NewCommand: callers that have their keys as values of type any save allocations.
func (c *Command) Init(s *Script, keys int, args ...any) {
	c.ctx, c.script = context.Background(), s
	c.keys = keyCount{n: keys}
	c.Args = append(append(c.buffer[:0], evalsha, s.shaArg, &c.keys), args...)
}

// key returns the first key, which decides on the master. There must be one.
func (c *Command) key() string {
	key, _ := c.Args[firstKey].(string)
	return key
}

// deliver notifies the caller of the answer. It must be called once.
func (c *Command) deliver() {
	if c.Done != nil {
		c.Done(c)
		return
	}
	c.answered <- struct{}{}
}

// withdraw cancels a command in a batch queue. It returns false if a sender has taken the command before.
func (c *Command) withdraw() bool { return c.state.CompareAndSwap(commandQueued, commandWithdrawn) }

// singleTryCmd is a [redis.Cmd] without the retries of go-redis. Why: after a lost reply go-redis sends a command again,
// up to four executions in all, without notice. This package decides itself whether and for how long to retry: by the
// outcome, and by the time that the caller has left.
type singleTryCmd struct{ redis.Cmd }

// NoRetry returns true, so that go-redis does not send the command again.
func (*singleTryCmd) NoRetry() bool { return true }

// newSingleTryCmd makes a command that is no script, such as WAIT.
func newSingleTryCmd(args ...any) *singleTryCmd {
	return &singleTryCmd{*redis.NewCmd(context.Background(), args...)}
}

// buildCmd makes the go-redis command that runs a script.
type buildCmd = func(c *Command) redis.Cmder

// byHash makes an EVALSHA, which sends only the hash of the script.
func byHash(c *Command) redis.Cmder { return c.prepare(c.Args) }

// byText makes an EVAL, for a server that does not know the script: for instance after SCRIPT FLUSH, a restart or a
// failover.
func byText(c *Command) redis.Cmder {
	c.keys.written = false                                        // the server has refused the hash
	args := append([]any{"eval", c.script.Source}, c.Args[2:]...) // a copy: hooks may still read the arguments of EVALSHA
	return c.prepare(args)
}

// prepare makes the go-redis command with these arguments. Its context is the background: the one that counts is passed
// when the command is sent.
func (c *Command) prepare(args []any) redis.Cmder {
	c.cmd.Cmd = *redis.NewCmd(context.Background(), args...)
	c.cmd.SetFirstKeyPos(firstKey)
	return &c.cmd
}

// readResult sets the reply or the error of the command from its go-redis command.
func (c *Command) readResult() {
	if c.Reply, c.Err = c.cmd.Result(); c.Err != nil {
		c.Err = c.markUnwritten(readable(unwrapScript(c.Err)))
	}
}

// timeoutError returns the error of a command. If ctx has ended, or its deadline has passed, a timeout of go-redis becomes
// ErrNotAnswered, or ErrNotSent if the command was not written.
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

// markUnwritten wraps err in an unwrittenError if the command was never written to a connection, and so was not executed.
func (c *Command) markUnwritten(err error) error {
	if err == nil || c.keys.written || Replied(err) {
		return err
	}
	return &unwrittenError{err}
}

// keyCount is the number of keys as an argument of EVALSHA. It records whether the server can have seen the command.
//
// Why this argument: go-redis encodes it when it writes the command to a connection, and not before. So written stays false
// if a hook, a limiter or the connection pool refuses the command. It costs no allocation.
type keyCount struct {
	n       int
	written bool    // true if the command was written to a connection
	digits  [4]byte // the memory of the encoded number
}

// MarshalBinary returns the number in decimal digits. go-redis calls it when it writes the command.
func (k *keyCount) MarshalBinary() ([]byte, error) {
	k.written = true
	return strconv.AppendInt(k.digits[:0], int64(k.n), 10), nil
}

// String returns the number in decimal digits, for hooks that print commands.
func (k *keyCount) String() string { return strconv.Itoa(k.n) }

// Script is a Lua script and the SHA-1 under which servers know it. It is not changed, so it is safe for concurrent use.
type Script struct {
	Source string // the text
	shaArg any    // the SHA-1 in hexadecimal digits, a string; kept as any to save an allocation for each command
	writes bool   // true if it can write, so that a replica refuses it
}

// writing finds the commands of scripts that write.
var writing = regexp.MustCompile(`call\('(SET|HSET|HDEL|HINCRBY|INCR|DEL|UNLINK|ZADD|ZREM|PEXPIRE)'`)

// NewScript returns the script of a Lua source.
func NewScript(source string) *Script {
	return &Script{Source: source, shaArg: redis.NewScript(source).Hash(), writes: writing.MatchString(source)}
}

// evalsha is the command that runs a script by its hash.
var evalsha any = "evalsha"

// ReadScripts returns the text of the files lua/<name>.lua, one behind the other. It panics if one is missing, because the
// files are part of the program.
func ReadScripts(files embed.FS, names ...string) string {
	var source strings.Builder
	for _, name := range names {
		text, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	return source.String()
}
