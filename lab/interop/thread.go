package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// thread is a caller. Like a thread in Java it is one owner of each lock, and enters again what it holds.
type thread struct {
	name   string
	site   *site
	leases map[string][]entered // of each lock, the latest last
}

type entered struct {
	kind  string
	lease *core.Lease
}

var errNothingHeld = errors.New("this thread holds nothing of that name")

// run carries out one command.
func (t *thread) run(c Command) (string, error) {
	locker, err := t.site.locker(c)
	if err != nil {
		return "", err
	}
	switch c.Verb {
	case "lock":
		return "held", t.lock(c, locker)
	case "trylock":
		return t.tryLock(c, locker)
	case "unlock":
		return "released", t.unlock(c)
	case "force":
		forced, err := t.site.locks.ForceUnlock(t.site.ctx, locker.Name())
		return strconv.FormatBool(forced), err
	case "token":
		return t.tell(c, func(l *core.Lease) string { return strconv.FormatInt(l.Token(), 10) })
	case "owner":
		return t.tell(c, func(l *core.Lease) string { return l.Owner() })
	case "lost":
		return t.tell(c, func(l *core.Lease) string {
			<-l.Done()
			return class(context.Cause(l.Context()))
		})
	case "contend":
		return t.contend(c, locker)
	case "pairs":
		return t.pairs(c, locker)
	case "permits":
		return t.permits(c, locker)
	default:
		return "", fmt.Errorf("verb %q", c.Verb)
	}
}

// context is the context of the last lease of the name, whose owner it carries.
func (t *thread) context(c Command) context.Context {
	if held := t.leases[c.Arguments["name"]]; len(held) > 0 {
		return held[len(held)-1].lease.Context()
	}
	return t.site.ctx
}

func options(c Command) (opts []core.LockOption) {
	if c.has("lease") {
		opts = append(opts, core.WithFixedTTL(c.duration("lease", time.Millisecond)))
	}
	if c.has("owner") {
		opts = append(opts, core.WithOwner(c.Arguments["owner"]))
	}
	if c.has("wait") {
		opts = append(opts, core.WithWait(c.duration("wait", time.Millisecond)))
	}
	return opts
}

func (t *thread) lock(c Command, locker *core.Lock) error { return t.keep(c, locker.Lock) }

// keep keeps the lease that take returns.
func (t *thread) keep(c Command, take func(context.Context, ...core.LockOption) (*core.Lease, error)) error {
	lease, err := take(t.context(c), options(c)...)
	if err != nil {
		return err
	}
	name := c.Arguments["name"]
	t.leases[name] = append(t.leases[name], entered{c.Arguments["kind"], lease})
	return nil
}

// tryLock waits if the command says so, as tryLock of Redisson does.
func (t *thread) tryLock(c Command, locker *core.Lock) (string, error) {
	take := locker.Lock
	if !c.has("wait") {
		take = locker.TryLock
	}
	err := t.keep(c, take)
	if errors.Is(err, core.ErrNotAcquired) {
		return "false", nil
	}
	return strconv.FormatBool(err == nil), err
}

// unlock ends the last lease of that kind and name.
func (t *thread) unlock(c Command) error {
	name := c.Arguments["name"]
	held := t.leases[name]
	for i := len(held) - 1; i >= 0; i-- {
		if held[i].kind == c.Arguments["kind"] {
			lease := held[i].lease
			t.leases[name] = append(held[:i:i], held[i+1:]...)
			return lease.Unlock(context.WithoutCancel(t.site.ctx))
		}
	}
	return errNothingHeld
}

func (t *thread) tell(c Command, what func(*core.Lease) string) (string, error) {
	held := t.leases[c.Arguments["name"]]
	if len(held) == 0 {
		return "", errNothingHeld
	}
	return what(held[len(held)-1].lease), nil
}
