package core

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option configures a [Client]. Every [LockOption] is an Option too: the client's value applies where a lock or a call
// does not set one.
type Option interface{ applyClient(*clientConfig) }

// LockOption configures a lock, or one call on it. A call's value overrides the lock's, and the lock's overrides the
// client's. [New], or the call that would use an invalid value, returns [ErrInvalidOption].
type LockOption interface {
	Option
	OnceOption
	ElectionOption
	applyLock(*lockConfig)
}

const (
	defaultPrefix = "lock:"
	defaultTTL    = 30 * time.Second
	minTTL        = 10 * time.Millisecond
	maxTTL        = 365 * 24 * time.Hour
	// leastLimit is the shortest duration that can be meant: a number without unit is one of nanoseconds.
	leastLimit = time.Millisecond
)

// defaultMaxWaiters is more than an application needs, and few enough for the memory of a process.
const defaultMaxWaiters = 10_000

type clientConfig struct {
	prefix string
	logger *slog.Logger
	hooks  Hooks
	lock   lockConfig

	maxWaiters int // for one name
	instance   string

	waitWarning, holdWarning time.Duration // 0 for none

	nodeTimeout time.Duration // of a Redlock; 0: by the TTL
}

func newClientConfig(opts []Option) clientConfig {
	c := clientConfig{
		prefix: defaultPrefix, logger: slog.Default(), maxWaiters: defaultMaxWaiters,
		instance: inventory.DefaultInstance(), waitWarning: waitWarningInterval, holdWarning: holdWarningInterval,
		lock: lockConfig{ttl: defaultTTL, wait: -1},
	}
	for _, opt := range opts {
		if opt != nil {
			opt.applyClient(&c)
		}
	}
	return c
}

func (c *lockConfig) refuse(err error) {
	if c.err == nil {
		c.err = err
	}
}

type clientOption func(*clientConfig)

func (o clientOption) applyClient(c *clientConfig) { o(c) }

type lockOption struct {
	seal.Mark
	set func(*lockConfig)
}

// newLockOption names an option, and has its argument for guards that read it.
func newLockOption(name string, value any, set func(*lockConfig)) LockOption {
	return &lockOption{seal.Mark{Name: "core." + name, Value: value}, set}
}

func (o *lockOption) applyClient(c *clientConfig) { o.set(&c.lock) }
func (o *lockOption) applyLock(c *lockConfig)     { o.set(c) }
func (o *lockOption) applyOnce(c *onceConfig)     { o.set(&c.lock) }

// CheckLock and CheckOnce are for [seal.CheckOptions] and [seal.CheckOnceOptions].
func (*lockOption) CheckLock(all []seal.Option) error { return checkLockOptions(all) }
func (*lockOption) CheckOnce(all []seal.Option) error { return checkOnceOptions(all) }

// checkLockOptions returns the error for which a lock with these options would be refused.
func checkLockOptions(all []seal.Option) error {
	var c lockConfig
	for _, o := range all {
		o.(LockOption).applyLock(&c)
	}
	return c.err
}

func (o *lockOption) applyElection(c *electionConfig) { o.set(&c.lock) }

// WithPrefix sets the prefix of names in Redis. Use "" to share locks with Redisson clients that lock the bare name.
// Defaults to "lock:".
func WithPrefix(prefix string) Option {
	return clientOption(func(c *clientConfig) { c.prefix = prefix })
}

// WithLogger sets the logger for lost leases, failing renewals and other warnings. Names of locks appear as a digest
// only, the first 8 hex digits of the key's SHA-256; hooks get the whole names. Nil switches logging off.
//
// After the first answer of Redis, the client sends INFO in the background. It warns of settings that lose locks or
// prevent them: an evicting maxmemory-policy, a replica in place of the master, a server before 6.2. It does not send
// INFO if the logger does not take warnings.
//
// Defaults to [slog.Default].
func WithLogger(logger *slog.Logger) Option {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return clientOption(func(c *clientConfig) { c.logger = logger })
}

// WithHooks adds functions that are called for every acquisition, release, renewal and loss. With several of these options
// all are called, in the order of the options. Defaults to none.
func WithHooks(hooks Hooks) Option {
	return clientOption(func(c *clientConfig) { c.hooks = c.hooks.then(hooks) })
}

// WithMaxWaiters bounds how many callers of this client wait for one name at a time, in Lock or in a [Once] with
// [WithWait]. One more is refused at once with [ErrTooManyWaiters], mostly without a command to Redis. So too many
// calls cost neither memory nor Redis more than that. Calls that ask only once, as TryLock does, do not count, and
// re-entry is not refused. The bound is per name: where callers choose the names, bound the callers too, as
// the HTTP guards do. At least 1. Defaults to 10,000.
func WithMaxWaiters(most int) Option {
	return clientOption(func(c *clientConfig) {
		if most < 1 {
			c.lock.refuse(invalidOption("WithMaxWaiters(%d): at least 1 is needed", most))
		}
		c.maxWaiters = most
	})
}

// WithNodeTimeout sets how long each server of a [Redlock] gets to answer; [New] refuses it. Choose it short enough
// that an unreachable server does not use up the lease that the others grant, and long enough for a slow server.
// Defaults to 300 ms. With a TTL below 1.2 s it is a quarter of the TTL, but at least 50 ms. With a TTL above 30 s it is a
// hundredth of the TTL, but at most a second.
func WithNodeTimeout(limit time.Duration) Option {
	return clientOption(func(c *clientConfig) {
		if limit < time.Millisecond || limit > time.Minute {
			c.lock.refuse(invalidOption("WithNodeTimeout(%v): 1ms to 1m is allowed%s", limit, seal.UnitHint(limit)))
		}
		c.nodeTimeout = limit
	})
}

// WithRestartDelay makes each server of a [Redlock] refuse free locks until it has been up for so long. A server may
// have lost locks when it restarted; they have expired by then if no TTL is longer. So [NewRedlock], Lock, TryLock and
// Extend refuse a longer TTL and a longer [WithMinHold], with [ErrInvalidOption]. Set the same delay in all programs.
//
// Servers that write every grant to an append-only file before they answer, with appendfsync always, do not need this
// option. It affects neither re-entry nor renewal. Servers count their uptime in whole seconds, so up to two more seconds
// pass. The clocks of the servers must differ by less than the delay, or tokens may fall. [New] refuses the option. At least
// 1 ms; 0 is none. Defaults to 0.
func WithRestartDelay(least time.Duration) Option {
	return clientOption(func(c *clientConfig) {
		c.lock.checkUnit("WithRestartDelay", least)
		if least < 0 || least > maxTTL {
			c.lock.refuse(invalidOption("WithRestartDelay(%v): 0 to %v is allowed", least, maxTTL))
		}
		c.lock.restartDelay = least
	})
}

// WithTTL sets how long Redis keeps a lease without renewal. That is how long a crashed holder blocks the others. The
// client renews the lease of a running process every third of the TTL. Whole milliseconds, 10 ms to 8760 h. Defaults to
// 30 s.
func WithTTL(ttl time.Duration) LockOption {
	return newLockOption("WithTTL", ttl, func(c *lockConfig) {
		c.checkTTL("WithTTL", ttl)
		c.ttl, c.fixed = ttl, false
	})
}

// WithFixedTTL is [WithTTL] without renewal: the lease ends after ttl unless [Lease.Extend] extends it.
func WithFixedTTL(ttl time.Duration) LockOption {
	return newLockOption("WithFixedTTL", ttl, func(c *lockConfig) {
		c.checkTTL("WithFixedTTL", ttl)
		c.ttl, c.fixed = ttl, true
	})
}

// WithWait sets how long Lock waits before it returns [ErrNotAcquired]; with 0 it asks once. Other values are at least 1
// ms, so round what is left of a deadline. A wait below the round trip to Redis ends in [ErrUnavailable], because no
// answer can arrive in that time. The context bounds the waiting too. TryLock never waits. Defaults to as long as the
// context allows.
func WithWait(limit time.Duration) LockOption {
	return newLockOption("WithWait", limit, func(c *lockConfig) {
		c.checkUnit("WithWait", limit)
		if limit < 0 {
			c.refuse(invalidOption("WithWait(%v): negative", limit))
		}
		c.wait = limit
	})
}

// WithMaxHold sets how long a lease is renewed at most, against holders that never unlock. Then its context ends with
// [ErrLeaseLost], and the lock is free one TTL later at the latest. 1 ms to 8760 h; 0 is no limit. Defaults to 0.
//
// The limit also ends every lease that has entered the lock again by the context of this one, even if this one was unlocked
// before. The longest of their TTLs counts. A re-entry by [WithOwner] has no outer lease, so only its own limit applies.
func WithMaxHold(limit time.Duration) LockOption {
	return newLockOption("WithMaxHold", nil, func(c *lockConfig) {
		c.checkUnit("WithMaxHold", limit)
		if limit < 0 || limit > maxTTL {
			c.refuse(invalidOption("WithMaxHold(%v): 0 to %v is allowed", limit, maxTTL))
		}
		c.maxHold = limit
	})
}

// WithMinHold keeps the lock taken for at least this long after its grant, even if it is unlocked before or its holder
// crashes. Use it for short work on hosts whose clocks differ. Whole milliseconds, 10 ms to 8760 h; 0 is none. Defaults to 0.
func WithMinHold(least time.Duration) LockOption {
	return newLockOption("WithMinHold", least, func(c *lockConfig) {
		if least != 0 {
			c.checkTTL("WithMinHold", least)
		}
		c.minHold = least
	})
}

// WithOwner sets the owner instead of the one that the context carries. A call with the same owner enters a lock that
// the owner holds, from any process and by any lease: calls with equal owners do not exclude each other. So use an owner
// that cannot be guessed, and a different one for each piece of work that others must not enter. The owner of a lease is to be
// taken from [Lease.Owner], not from hooks or lists: while the lease lasts, nobody else is handed its hold then. [New] and [NewRedlock] accept
// it and log a warning, because no lock excludes two calls of such a client. A waiting call asks every one to two seconds
// whether its owner has got the lock elsewhere. At most 128 bytes of printable ASCII. Defaults to the context's owner, or a new one.
func WithOwner(owner string) LockOption {
	return newLockOption("WithOwner", nil, func(c *lockConfig) {
		if err := checkOwner(owner); err != nil {
			c.refuse(err)
		}
		c.owner, c.fresh = owner, false
	})
}

// newOwner gives each call a new owner, see [seal.Facts].
var newOwner = newLockOption("newOwner", nil, func(c *lockConfig) { c.owner, c.fresh = "", true })

// askOnce makes Lock wait for one answer of Redis, however long that takes, and not for another holder.
var askOnce = newLockOption("askOnce", nil, func(c *lockConfig) { c.once = true })

// ofMulti makes a lock part of a Multi.
var ofMulti = newLockOption("ofMulti", nil, func(c *lockConfig) { c.ofMulti = true })

// checkUnit refuses a duration that is too short to be meant.
func (c *lockConfig) checkUnit(option string, d time.Duration) {
	if d > 0 && d < leastLimit {
		c.refuse(invalidOption("%s(%v): 0 or at least %v is needed%s", option, d, leastLimit, seal.UnitHint(d)))
	}
}

func (c *lockConfig) checkTTL(option string, ttl time.Duration) {
	switch {
	case ttl < minTTL:
		c.refuse(invalidOption("%s(%v): at least %v is needed%s", option, ttl, minTTL, seal.UnitHint(ttl)))
	case ttl > maxTTL:
		c.refuse(invalidOption("%s(%v): at most %v is allowed", option, ttl, maxTTL))
	case ttl%time.Millisecond != 0:
		c.refuse(invalidOption("%s(%v): Redis counts in whole milliseconds", option, ttl))
	}
}

// checkOwner keeps owners apart from the other fields of the lock's hash, and from Redisson's write locks.
func checkOwner(owner string) error {
	if owner == "" || len(owner) > 128 {
		return invalidOption("WithOwner: %d bytes, 1 to 128 are allowed", len(owner))
	}
	for _, r := range owner {
		if r <= ' ' || r > '~' {
			return invalidOption("WithOwner(%q): only printable ASCII is allowed", owner)
		}
	}
	if script.IsLockField(owner) || strings.HasSuffix(owner, ":write") {
		return invalidOption("WithOwner(%q): reserved", owner)
	}
	return nil
}

// checkPrefix refuses prefixes with which no name could be used.
func checkPrefix(prefix string) error {
	if err := script.CheckPrefix(prefix); err != nil {
		return invalidOption("WithPrefix%v", err)
	}
	return nil
}

// maxReplicas is more replicas than any master feeds. WAIT takes numbers for which it could only wait in vain, or not at all.
const maxReplicas = 1000

// WithReplicaAck makes a grant, a renewal or Extend count only once n replicas have acknowledged it within the
// timeout. Then a failover to one of these replicas loses no grant. Set n to the number of all replicas. Fewer
// are not enough: until the old master learns of a promotion, a replica that still follows it acknowledges what the new
// master lacks.
//
// If too few replicas acknowledge a grant, the client takes it back. Some milliseconds may pass until the name is free, also
// after the error. TryLock then returns [ErrNotReplicated], which is
// also [ErrUnavailable]; Lock retries for some seconds, as in an outage. If too few acknowledge a renewal, ValidUntil
// does not move, because the next master may have only the previous renewal. The client retries while the lease is
// valid.
//
// Each of these commands costs a round trip to the replicas; before Redis 7.2, even one that is answered "held".
// Commands that wait for replicas share the waiting, among themselves only. n is 1,000 at most. Whole milliseconds,
// shorter than the TTL: choose it far shorter, so that a renewal has time for a second try. The client has to be a
// [redis.Client], even one for Sentinel, or a [redis.ClusterClient]. A [Redlock] refuses the option. Defaults to none.
func WithReplicaAck(n int, timeout time.Duration) LockOption {
	return newLockOption("WithReplicaAck", nil, func(c *lockConfig) {
		switch {
		case n < 1:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): at least 1 replica is needed", n, timeout))
		case n > maxReplicas:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): no master has more than %d replicas", n, timeout, maxReplicas))
		case timeout <= 0:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): the timeout has to be positive", n, timeout))
		case timeout%time.Millisecond != 0:
			c.refuse(invalidOption("WithReplicaAck(%d, %v): Redis counts in whole milliseconds%s", n, timeout, seal.UnitHint(timeout)))
		}
		c.ack = transport.Ack{Replicas: n, Timeout: timeout}
	})
}

// publicAck returns err with an transport.AckError as the [ErrNotReplicated] of the API.
func publicAck(err error) error {
	var missing *transport.AckError
	if errors.As(err, &missing) {
		return errorf("%w: %d of %d", ErrNotReplicated, missing.Acknowledged, missing.Wanted)
	}
	return err
}
