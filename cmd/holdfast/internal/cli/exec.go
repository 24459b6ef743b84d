package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// execCommand runs a command while it holds a lock.
type execCommand struct {
	Name string `arg:"" names:"locks" help:"Name of the lock."`

	Nonblock  bool      `short:"n" help:"Do not wait for the lock."`
	Wait      *duration `short:"w" placeholder:"SECS" help:"Wait so long for the lock at most. Defaults to no limit."`
	Conflict  int       `short:"E" name:"conflict-exit-code" default:"75" placeholder:"N" help:"Exit status if the lock was not acquired: 1 as flock(1), 0 as setlock -x."`
	Shared    bool      `short:"s" xor:"mode" help:"Take the lock for reading: shared with other readers."`
	Exclusive bool      `short:"x" xor:"mode" help:"Take the lock for writing, in turns with readers. Defaults to a mutex, which excludes both."`
	Jobs      *int      `short:"j" xor:"mode" placeholder:"N" help:"Let at most N hold the lock at a time."`
	Fair      bool      `help:"First come, first served on all hosts."`
	MinHold   duration  `placeholder:"TIME" help:"Keep the lock for at least this time, even if the command is shorter."`

	program `embed:""`
}

// Run is called by the parser.
func (c *execCommand) Run(env *environment) error {
	switch {
	case c.Nonblock && c.Wait != nil:
		return usageError("-n and -w exclude each other")
	case c.Jobs != nil && *c.Jobs < 1:
		return usageError("-j %d: at least 1 is needed", *c.Jobs)
	case c.Conflict < 0 || c.Conflict > 255:
		return usageError("-E %d: 0 to 255 is allowed", c.Conflict)
	}
	return c.supervised(env, func() error { return c.keep(env) })
}

// keep takes the lock and runs the command.
func (c *execCommand) keep(env *environment) error {
	all, err := c.clients(env)
	if err != nil {
		return err
	}
	defer all.close()
	lease, err := c.lock(env.ctx, c.locker(all.locks))
	all.withdraw = err != nil
	if errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) && env.ctx.Err() == nil {
		return &statusError{c.Conflict, c.conflictText(env, err)}
	}
	if err != nil {
		return errors.Join(context.Cause(env.ctx), err)
	}
	outcome, err := c.runUnder(env, lease)
	unlocked := lease.Unlock(unlockContext(env))
	switch {
	case err != nil:
		return cannotRun(err)
	case outcome == 0 && unlocked != nil && !errors.Is(unlocked, core.ErrNotHeld):
		env.tell(unlocked)
	}
	return exitWith(outcome)
}

// runUnder runs the command, and returns its exit status.
func (c *execCommand) runUnder(env *environment, lease *core.Lease) (int, error) {
	var slot []string
	if c.Jobs != nil {
		slot = append(slot, slotVariable+"="+strconv.Itoa(lease.Slot()))
	}
	command, err := c.command(c.Name, lease, slot...)
	if err != nil {
		return 0, err
	}
	outcome, err := env.supervisor.Run(lease, command, c.limits())
	return outcome.ExitStatus(), err
}

// conflictText is empty for -n and for -E 0, with which a conflict is expected, except with --verbose.
func (c *execCommand) conflictText(env *environment, err error) string {
	if (c.Nonblock || c.Conflict == 0) && !env.flags.Verbose {
		return ""
	}
	return err.Error()
}

// tryTimeout bounds a request for the lock without waiting, if Redis does not reply. It is long enough to connect with TLS on
// a busy host. It is bounded because a line of a crontab runs again each minute.
const tryTimeout = 5 * time.Second

// taker is a [core.Lock].
type taker interface {
	Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error)
	TryLock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error)
}

// lock waits for the lock as the flags say.
func (c *execCommand) lock(ctx context.Context, l taker) (*core.Lease, error) {
	if c.Nonblock || c.Wait != nil && c.Wait.value() == 0 {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return l.TryLock(ctx)
	}
	var opts []core.LockOption
	if c.Wait != nil {
		opts = append(opts, core.WithWait(c.Wait.value()))
	}
	return l.Lock(ctx, opts...)
}

// locker returns the lock of the strategy that the flags choose.
func (c *execCommand) locker(locks *core.Client) *core.Lock {
	opts := []core.LockOption{core.WithMinHold(c.MinHold.value())}
	switch {
	case c.Jobs != nil:
		return locks.Semaphore(c.Name, *c.Jobs, opts...) // it is fair anyway
	case c.Shared && c.Fair:
		return locks.FairRead(c.Name, opts...)
	case c.Shared:
		return locks.Read(c.Name, opts...)
	case c.Exclusive && c.Fair:
		return locks.FairWrite(c.Name, opts...)
	case c.Exclusive:
		return locks.Write(c.Name, opts...)
	case c.Fair:
		return locks.Fair(c.Name, opts...)
	}
	return locks.Mutex(c.Name, opts...)
}
