package guard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option is an option of a guard: one of core, one that several guards share, or one of an adapter.
type Option = seal.Option

// Config is what the options of core and the shared options of a guard amount to. Adapters keep their own options elsewhere.
type Config struct {
	// Lock has the lock options in the order given, except core.WithWait. Guards do the waiting themselves, so that a busy
	// lock is never taken for an outage.
	Lock []core.LockOption
	// Once has the same except core.WithMinHold, which only locks have, and the options of records.
	Once []core.OnceOption

	TTL           time.Duration      // of core.WithTTL or core.WithFixedTTL; 0 if there is none
	Wait          time.Duration      // of core.WithWait; 0 if there is none
	MinHold       time.Duration      // of core.WithMinHold; 0 if there is none
	Retention     time.Duration      // of core.WithRetention, with core's default
	FailurePolicy core.FailurePolicy // of core.WithFailurePolicy
	MaxValue      int                // of core.WithMaxValue; 0 if there is none
	Proof         core.Proof         // of core.WithProof; nil if there is none

	FailOpen      bool
	OptionalKey   bool
	KeySecret     []byte
	AskTimeout    time.Duration
	FinishTimeout time.Duration
	ZombieGrace   time.Duration

	// FromProof turns what a run has committed with its proof into the value that its record would have. A place sets it if its
	// records have a form of their own. If it is nil, they are the same.
	FromProof func(ask Ask, value []byte) []byte

	given []string
}

// The defaults of options, in all guards.
const (
	defaultRetention  = 24 * time.Hour // core's
	defaultAskTimeout = time.Second
	// Longer than the longest read timeout of commands, which is 3 s: so one connection that has died leaves time for another try.
	defaultFinishTimeout = 5 * time.Second
	defaultZombieGrace   = 2 * time.Minute
)

// Given reports whether an option of that name was given.
func (c *Config) Given(name string) bool { return c.LastGiven(name) != "" }

// LastGiven returns the one of these names of which an option was given last, "" if none was.
func (c *Config) LastGiven(names ...string) string {
	for _, name := range slices.Backward(c.given) {
		if slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// The options that guards of each kind take, unless there is a reason against one in their place. Both take core.WithTTL, WithWait,
// WithMaxHold and WithReplicaAck, and of this package FailOpen, OptionalKey, WithKeySecret and WithFinishTimeout. Names come from
// [seal.Mark]: core's have core in front, this package's nothing.
var (
	ExclusiveTakes = slices.Concat(bothTake, []string{"core.WithFixedTTL", "core.WithMinHold", "core.WithPermits"})
	OnceTakes      = slices.Concat(bothTake, []string{"core.WithRetention", "core.WithFailurePolicy", "core.WithMaxValue", "core.WithProof"})

	bothTake = []string{
		"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithReplicaAck",
		"FailOpen", "OptionalKey", "WithKeySecret", "WithFinishTimeout",
	}
)

// reasons are those for which guards with records do not take an option, in every place that has no other reason.
var reasons = map[string]string{
	"core.WithOwner":       "every run has an owner of its own",
	"core.WithFixedTTL":    "a run keeps its lease until it ends; core.WithMaxHold limits it",
	"core.WithMinHold":     "a record has its core.WithRetention",
	"core.WithPermits":     "only a semaphore has permits",
	"core.WithFingerprint": "each work item has its own",
	"core.WithLabel":       "records have the label of their work",
	"core.WithNote":        "records have the note of their work",
	"core.WithWindow":      "it is for keys that are made for a time",
	"core.WithQuota":       "its keys have no scope to count in",
}

// A Place is a constructor of a guard, and says which options it takes. Others are refused with the reason.
type Place struct {
	// Name is what users call, for errors: "cronlock.AddFunc".
	Name string
	// Takes has the names of options that the place takes: [ExclusiveTakes] or [OnceTakes], and its own.
	Takes []string
	// Refuses has reasons, by name, for which the place does not take an option, whether Takes has it or not. The reason for
	// options that are in none of them is Otherwise.
	Refuses   map[string]string
	Otherwise string
}

// Own makes an option of one place, whose own options amount to a C. Sort calls set.
func Own[C any](name string, set func(*C) error) Option {
	return own[C]{seal.Mark{Name: name}, set}
}

type own[C any] struct {
	seal.Mark
	set func(*C) error
}

func (own[C]) owned() {}

// setOwn applies an option of [Own] to c, and refuses one for another type.
func setOwn[C any](p Place, o Option, c *C) error {
	switch mine := o.(type) {
	case own[C]:
		return mine.set(c)
	case own[Config]: // see Config.add
	case interface{ owned() }:
		return fmt.Errorf("%w: %s: %s is for work of another type", core.ErrInvalidOption, p.Name, seal.MarkOf(o).Name)
	}
	return nil
}

// Sort returns the effective options of core and of guards, and applies the place's own options, in the order given. Nil options are
// skipped. The error is about the first option that is invalid, or that makes no sense in this place. It names both, and is a
// [core.ErrInvalidOption] unless set has returned another one. An option of [Own] for another C is refused.
func Sort[C any](p Place, opts []Option, place *C) (Config, error) {
	c := Config{
		Retention: defaultRetention, AskTimeout: defaultAskTimeout, FinishTimeout: defaultFinishTimeout,
		ZombieGrace: defaultZombieGrace,
	}
	for _, o := range opts {
		if o == nil {
			continue
		}
		mark := seal.MarkOf(o)
		err := p.check(mark.Name)
		if err == nil {
			err = c.add(o, mark)
		}
		if err == nil {
			err = setOwn(p, o, place)
		}
		if err != nil {
			return c, err
		}
	}
	if c.FailOpen && c.FailurePolicy == core.HoldFailures && (c.Proof == nil || !c.Proof.OnlyEffect()) {
		return c, fmt.Errorf("%w: %s: FailOpen with core.HoldFailures: what must not run twice cannot run without a record",
			core.ErrInvalidOption, p.Name)
	}
	return c, nil
}

// check returns the error for an option that makes no sense here.
func (p Place) check(name string) error {
	reason := p.Refuses[name]
	if reason == "" && slices.Contains(p.Takes, name) {
		return nil
	}
	reason = cmp.Or(reason, p.Otherwise, reasons[name])
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Errorf("%w: %s does not take %s%s", core.ErrInvalidOption, p.Name, name, reason)
}

func (c *Config) add(o Option, mark seal.Mark) error {
	c.given = append(c.given, mark.Name)
	switch o := o.(type) {
	case own[Config]: // which several guards share
		return o.set(c)
	case core.LockOption:
		return c.addLock(o, mark)
	case core.OnceOption:
		switch mark.Name {
		case "core.WithRetention":
			c.Retention, _ = mark.Value.(time.Duration)
		case "core.WithFailurePolicy":
			c.FailurePolicy, _ = mark.Value.(core.FailurePolicy)
		case "core.WithMaxValue":
			c.MaxValue, _ = mark.Value.(int)
		case "core.WithProof":
			c.Proof, _ = mark.Value.(core.Proof)
		}
		c.Once = append(c.Once, o)
		return seal.CheckOnceOptions(o)
	}
	return nil
}

func (c *Config) addLock(o core.LockOption, mark seal.Mark) error {
	d, _ := mark.Value.(time.Duration)
	switch mark.Name {
	case "core.WithWait":
		c.Wait = d
	case "core.WithMinHold":
		c.Lock, c.MinHold = append(c.Lock, o), d
	case "core.WithTTL", "core.WithFixedTTL":
		c.TTL = d
		fallthrough
	default:
		c.Lock, c.Once = append(c.Lock, o), append(c.Once, o)
	}
	return seal.CheckOptions(o)
}

// Without returns the options that do not have the name.
func Without[T Option](opts []T, name string) []T {
	return slices.DeleteFunc(slices.Clone(opts), func(o T) bool { return seal.MarkOf(o).Name == name })
}

// OwnDuration makes an option of one place of a duration, see [CheckDuration].
func OwnDuration[C any](name string, d time.Duration, field func(*C) *time.Duration) Option {
	return Own(name, func(c *C) error {
		*field(c) = d
		return CheckDuration(name, d)
	})
}

// LongestDuration is the longest one that options of guards take.
const LongestDuration = 365 * 24 * time.Hour

// CheckDuration returns the error for a duration that cannot be meant.
func CheckDuration(name string, d time.Duration) error {
	if d >= ShortestWait && d <= LongestDuration {
		return nil
	}
	return fmt.Errorf("%w: %s(%v): %v to %v is allowed%s", core.ErrInvalidOption, name, d, ShortestWait, LongestDuration,
		seal.UnitHint(d))
}

// CheckFunc returns the error for a function of an option that is nil.
func CheckFunc(name string, fn any) error {
	if IsNil(fn) {
		return fmt.Errorf("%w: %s: its function is nil", core.ErrInvalidOption, name)
	}
	return nil
}

// FailOpen lets a guard run its function unguarded while Redis is unreachable. It does not apply while Redis refuses. Defaults to
// refusing to run.
func FailOpen() Option {
	return Own("FailOpen", func(c *Config) error {
		c.FailOpen = true
		return nil
	})
}

// OptionalKey lets what has no key run unguarded. Defaults to refusing it.
func OptionalKey() Option {
	return Own("OptionalKey", func(c *Config) error {
		c.OptionalKey = true
		return nil
	})
}

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that a reader of Redis cannot guess whose they are. All
// processes need the same secret, of 16 bytes at least. Defaults to none.
func WithKeySecret(secret []byte) Option {
	const shortest = 16
	secret = slices.Clone(secret)
	return Own("WithKeySecret", func(c *Config) error {
		c.KeySecret = secret
		if len(secret) < shortest {
			return fmt.Errorf("%w: WithKeySecret: %d bytes, at least %d are needed", core.ErrInvalidOption, len(secret), shortest)
		}
		return nil
	})
}

// WithAskTimeout sets how long Redis may take to answer about work that does not wait, or waits for less than that. With
// [FailOpen], work that waits for longer gives Redis all its wait, 5 s at most. 1 ms to 8760 h. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option {
	return OwnDuration("WithAskTimeout", limit, func(c *Config) *time.Duration { return &c.AskTimeout })
}

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the record is retried in
// the background. 1 ms to 8760 h. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option {
	return OwnDuration("WithFinishTimeout", limit, func(c *Config) *time.Duration { return &c.FinishTimeout })
}

// WithZombieGrace sets how long a lease is renewed after its context was cancelled while the function continues. After that
// the lease expires. 1 ms to 8760 h. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option {
	return OwnDuration("WithZombieGrace", grace, func(c *Config) *time.Duration { return &c.ZombieGrace })
}
