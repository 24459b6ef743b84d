package core

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// outcome classifies the error of a command by whether the command was executed. Why it matters: Redis does not roll
// scripts back, and after a lost reply the command may or may not have been executed.
type outcome int

const (
	answered    outcome = iota // no error
	notExecuted                // it was not executed, and may be sent again
	unknown                    // it may have been executed, or may be yet; it is idempotent and may be sent again
	failed                     // it failed, perhaps after its first writes; sending it again would change nothing
	rejected                   // it failed before its first write; sending it again would change nothing
)

var (
	errNotSent       = errors.New("not sent before the wait ended")
	errNotAnswered   = errors.New("not answered before the wait ended")
	errTooLate       = errors.New("answered after the lease had ended")
	errRestarted     = errors.New("server restarted recently and may have lost the lock")
	errHoldReleased  = errors.New("given up before")
	errOtherStrategy = errors.New("held by another strategy than Mutex")
	errPanic         = errors.New("panic in a hook")
)

// transientReplies are the error codes with which a server refuses a command before executing it, for a reason that may
// pass.
var transientReplies = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MISCONF",
	"MOVED", "ASK", "NOSCRIPT", "max number of clients",
}

func classify(err error) outcome {
	if err == nil {
		return answered
	}
	var reply redis.Error
	var dial *net.OpError
	var stranger *tls.CertificateVerificationError
	var votes *quorumError
	var wait *waitError
	switch {
	case errors.As(err, &votes):
		return votes.outcome()
	case errors.As(err, &wait):
		return wait.outcome()
	case errors.Is(err, redis.ErrClosed), errors.Is(err, errOtherStrategy), errors.Is(err, ErrInvalidOption):
		return rejected
	case errors.Is(err, errPanic):
		return afterPanic(err)
	case unwritten(err):
		return notExecuted
	case errors.Is(err, errNotSent), errors.Is(err, errRestarted), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return notExecuted
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &stranger):
		return notExecuted
	case !errors.As(err, &reply):
		return unknown
	}
	for _, prefix := range transientReplies {
		if redis.HasErrorPrefix(err, prefix) {
			return notExecuted
		}
	}
	if wrongType(err) || crossSlot(err) || notLoggedIn(err) || notAllowed(err) || unknownCommand(err) {
		return rejected // the scripts meet a key of another type before they write
	}
	return failed
}

// afterPanic is the outcome of a command whose hook has panicked.
func afterPanic(err error) outcome {
	if unwritten(err) {
		return rejected
	}
	return failed
}

// unwrittenError is the error of a command that was never written to a connection.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }

func unwritten(err error) bool {
	var u *unwrittenError
	return errors.As(err, &u)
}

// transient reports whether err says nothing about the lock: the same command may be sent again.
func transient(err error) bool {
	o := classify(err)
	return o == notExecuted || o == unknown
}

// slotMigrating reports whether err says that a slot is being migrated from one master of a Cluster to another. Meanwhile
// commands with several keys are refused, unless all keys exist on one master.
func slotMigrating(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// notLoggedIn reports that the server has refused user or password, or wants them: it has run nothing then.
func notLoggedIn(err error) bool {
	return redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") ||
		unauthenticated(err)
}

// unauthenticated reports that the server, to which no user has logged in, has refused a command for its many arguments.
func unauthenticated(err error) bool {
	return redis.HasErrorPrefix(err, "Protocol error: unauthenticated")
}

// refusesUser reports that the server has refused the user, before a script or inside one.
func refusesUser(err error) bool {
	return notLoggedIn(err) || redis.HasErrorPrefix(err, "NOPERM") ||
		redis.HasErrorPrefix(err, "ACL failure") || redis.HasErrorPrefix(err, "The user executing the script can't")
}

// notAllowed reports that the user has no right to the script command or to a key. Nothing has run then, unlike after a
// refusal from inside a script.
func notAllowed(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && !fromScript(err)
}

// fromScript reports whether an error comes from inside a script, which may have written something before.
func fromScript(err error) bool {
	var inside *scriptError
	return errors.As(err, &inside) || strings.Contains(err.Error(), "@user_script") || strings.Contains(err.Error(), "in script")
}

// unknownCommand reports that the server does not know the script command, or has it under another name.
func unknownCommand(err error) bool { return redis.HasErrorPrefix(err, "unknown command") }

// crossSlot reports that the keys of a script do not lie together after all: behind a proxy, for instance.
func crossSlot(err error) bool { return redis.HasErrorPrefix(err, "CROSSSLOT") }

// scriptError is an error from inside a script, as servers before Redis 7 wrap it: the code that says what it
// was comes after "ERR Error running script (call to f_…): @user_script:1: ".
type scriptError struct {
	text string
	err  error
}

func (e *scriptError) Error() string { return e.text }
func (e *scriptError) RedisError()   {}
func (e *scriptError) Unwrap() error { return e.err }

// unwrapScript brings the code to the front, where newer servers have it.
func unwrapScript(err error) error {
	if err == nil || !redis.HasErrorPrefix(err, "Error running script") {
		return err
	}
	text := err.Error()
	const place = "@user_script:"
	at := strings.LastIndex(text, place)
	if at < 0 {
		return err
	}
	_, text, found := strings.Cut(text[at+len(place):], ": ")
	if !found {
		return err
	}
	return &scriptError{text: strings.TrimPrefix(text, "-"), err: err}
}

// failure is what a caller gets to see of a command's error: with the key that it is about, and recognizable as
// an outage if it was one, with the end of ctx if that came first.
func failure(ctx context.Context, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case wrongType(err):
		return errorf("%w: %q: %w", ErrWrongType, key, err)
	case unauthenticated(err):
		return errorf("%w: NOAUTH, it wants a password: %w", ErrPermission, err)
	case refusesUser(err):
		return errorf("%w: %w", ErrPermission, err)
	case !transient(err):
		return err
	case ctx.Err() != nil:
		return errorf("%w: %w: %w", ErrUnavailable, err, ctx.Err())
	}
	return errorf("%w: %w", ErrUnavailable, err)
}
