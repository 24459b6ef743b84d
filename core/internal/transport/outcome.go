package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Outcome classifies the error of a command by whether the command was executed. Why it matters: Redis does not roll
// scripts back, and after a lost reply the command may or may not have been executed.
type Outcome int

const (
	answered    Outcome = iota // no error
	NotExecuted                // it was not executed, and may be sent again
	Unknown                    // it may have been executed, or may be yet; it is idempotent and may be sent again
	Failed                     // it failed, perhaps after its first writes; sending it again would change nothing
	Rejected                   // it failed before its first write; sending it again would change nothing
)

// Errors of commands that did not come from Redis.
var (
	ErrNotSent     = WithOutcome(errors.New("not sent before the wait ended"), NotExecuted)
	ErrNotAnswered = errors.New("not answered before the wait ended")
	ErrPanic       = errors.New("panic in a hook")
)

// WithOutcome returns err as an error whose outcome is known to be o, whatever its text.
func WithOutcome(err error, o Outcome) error { return &outcomeError{err, o} }

// outcomeError is the error of withOutcome.
type outcomeError struct {
	error
	o Outcome
}

func (e *outcomeError) Unwrap() error    { return e.error }
func (e *outcomeError) Outcome() Outcome { return e.o }

// transientReplies are the error codes with which a server refuses a command before executing it, for a reason that may
// pass.
var transientReplies = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MISCONF",
	"MOVED", "ASK", "NOSCRIPT", "max number of clients",
}

// Classify returns the outcome of a command with that error. An error with a method Outcome has its own.
func Classify(err error) Outcome {
	if err == nil {
		return answered
	}
	var reply redis.Error
	var dial *net.OpError
	var stranger *tls.CertificateVerificationError
	var known interface{ Outcome() Outcome }
	switch {
	case errors.As(err, &known):
		return known.Outcome()
	case errors.Is(err, redis.ErrClosed):
		return Rejected
	case errors.Is(err, ErrPanic):
		return afterPanic(err)
	case Unwritten(err):
		return NotExecuted
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return NotExecuted
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &stranger):
		return NotExecuted
	case !errors.As(err, &reply):
		return Unknown
	}
	for _, prefix := range transientReplies {
		if redis.HasErrorPrefix(err, prefix) {
			return NotExecuted
		}
	}
	if WrongType(err) || CrossSlot(err) || notLoggedIn(err) || notAllowed(err) || UnknownCommand(err) {
		return Rejected // the scripts meet a key of another type before they write
	}
	return Failed
}

// afterPanic is the outcome of a command whose hook has panicked.
func afterPanic(err error) Outcome {
	if Unwritten(err) {
		return Rejected
	}
	return Failed
}

// unwrittenError is the error of a command that was never written to a connection.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }

// Unwritten reports whether err says that the command was never written to a connection.
func Unwritten(err error) bool {
	var u *unwrittenError
	return errors.As(err, &u)
}

// Transient reports whether err says nothing about the lock: the same command may be sent again.
func Transient(err error) bool {
	o := Classify(err)
	return o == NotExecuted || o == Unknown
}

// SlotMigrating reports whether err says that a slot is being migrated from one master of a Cluster to another. Meanwhile
// commands with several keys are refused, unless all keys exist on one master.
func SlotMigrating(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

// WrongType reports that a key of the script has another type.
func WrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// notLoggedIn reports that the server has refused user or password, or wants them: it has run nothing then.
func notLoggedIn(err error) bool {
	return redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") ||
		Unauthenticated(err)
}

// Unauthenticated reports that the server, to which no user has logged in, has refused a command for its many arguments.
func Unauthenticated(err error) bool {
	return redis.HasErrorPrefix(err, "Protocol error: unauthenticated")
}

// RefusesUser reports that the server has refused the user, before a script or inside one.
func RefusesUser(err error) bool {
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

// UnknownCommand reports that the server does not know the script command, or has it under another name.
func UnknownCommand(err error) bool { return redis.HasErrorPrefix(err, "unknown command") }

// CrossSlot reports that the keys of a script do not lie together after all: behind a proxy, for instance.
func CrossSlot(err error) bool { return redis.HasErrorPrefix(err, "CROSSSLOT") }

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

// replied reports whether a server has answered, be it with an error.
func replied(err error) bool {
	if err == nil {
		return true
	}
	var reply redis.Error
	return errors.As(err, &reply)
}
