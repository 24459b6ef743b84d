package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// Outcome classifies the error of a command by whether the command was executed. It matters because Redis does not roll scripts
// back, and after a lost reply the command may or may not have been executed.
type Outcome int

// The outcomes. The zero value means that there was no error.
const (
	answered    Outcome = iota
	NotExecuted         // the command was not executed, and may be sent again
	Unknown             // the command may have been executed, or may be yet; it is idempotent and may be sent again
	Failed              // the command failed, perhaps after its first writes; sending it again would change nothing
	Rejected            // the command failed before its first write; sending it again would change nothing
)

// Errors of commands that did not come from Redis.
var (
	// ErrNotSent is the error of a command that was withdrawn. Its outcome is NotExecuted.
	ErrNotSent = WithOutcome(errors.New("not sent in time"), NotExecuted)
	// ErrNotAnswered is the error of a command that was sent and not answered in time. Its outcome is Unknown.
	ErrNotAnswered = errors.New("not answered in time")
	// ErrNotYet is what the error of a command is, for errors.Is, if the server has answered that the command can do nothing yet.
	ErrNotYet = errors.New("not yet")
	// ErrPanic is wrapped by the error of a command during which the user's client has panicked, mostly in a hook.
	ErrPanic = errors.New("panic in a hook")
)

// WithOutcome returns an error that wraps err and for which Classify returns o, whatever its text.
func WithOutcome(err error, o Outcome) error { return &outcomeError{err, o} }

// outcomeError is the error of WithOutcome.
type outcomeError struct {
	error
	o Outcome
}

func (e *outcomeError) Unwrap() error    { return e.error }
func (e *outcomeError) Outcome() Outcome { return e.o }

// transientReplies are the error codes with which a server refuses a command before executing it, for a temporary reason.
var transientReplies = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MISCONF",
	"MOVED", "ASK", "NOSCRIPT", "max number of clients",
}

// Classify returns the outcome of a command with that error. An error with a method Outcome decides by itself. An error that
// is neither the reply of a server nor known otherwise counts as Unknown.
func Classify(err error) Outcome {
	if err == nil {
		return answered
	}
	var reply redis.Error
	var dial *net.OpError
	var known interface{ Outcome() Outcome }
	switch {
	case errors.As(err, &known):
		return known.Outcome()
	case errors.Is(err, redis.ErrClosed):
		return Rejected
	case errors.Is(err, ErrPanic) && Unwritten(err):
		return Rejected // the hook would probably panic again
	case errors.Is(err, ErrPanic):
		return Failed
	case !Replied(err) && Advice(err) != "":
		return Rejected // the connection was refused before a command
	case Unwritten(err), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.As(err, &dial) && dial.Op == "dial":
		return NotExecuted
	case noRedis(err):
		return Failed
	case !errors.As(err, &reply):
		return Unknown
	}
	if slices.ContainsFunc(transientReplies, func(code string) bool { return hasCode(err, code) }) || unknownScript(err) {
		return NotExecuted
	}
	if WrongType(err) || CrossSlot(err) || notLoggedIn(err) || notAllowed(err) || UnknownCommand(err) || OutOfMemory(err) || badDatabase(err) {
		return Rejected // the scripts meet a key of another type before they write
	}
	return Failed
}

// unwrittenError is the error of a command that was never written to a connection, see Unwritten.
type unwrittenError struct{ error }

func (e *unwrittenError) Unwrap() error { return e.error }

// Unwritten returns true if err says that the command was never written to a connection.
func Unwritten(err error) bool {
	var u *unwrittenError
	return errors.As(err, &u)
}

// Transient returns true if err says nothing about the lock, so that the same command may be sent again. It returns false
// for nil.
func Transient(err error) bool {
	o := Classify(err)
	return o == NotExecuted || o == Unknown
}

// MayHaveRun returns true if a command with that error may have been executed, in part or as a whole. It returns false for nil.
func MayHaveRun(err error) bool {
	o := Classify(err)
	return o == Unknown || o == Failed
}

// SlotMigrating returns true if err says that a slot is being migrated from one master of a Cluster to another. Meanwhile
// commands with several keys are refused, unless all keys exist on one master. It returns false for nil.
func SlotMigrating(err error) bool { return err != nil && hasCode(err, "TRYAGAIN") }

// WrongType returns true if a key of the script has another type in Redis. err must not be nil.
func WrongType(err error) bool { return hasCode(err, "WRONGTYPE") }

// notLoggedIn returns true if the server has refused user or password, or requires them. Then it has executed nothing.
func notLoggedIn(err error) bool {
	return WantsPassword(err) || hasCode(err, "WRONGPASS")
}

// WantsPassword returns true if the server has refused a command because no user has logged in. It refuses a command with many
// arguments with a text of its own. err must not be nil.
func WantsPassword(err error) bool {
	return hasCode(err, "NOAUTH") || hasCode(err, "Protocol error: unauthenticated")
}

// RefusesUser returns true if the server has refused the user, before a script or inside one. err must not be nil.
func RefusesUser(err error) bool {
	return notLoggedIn(err) || hasCode(err, "NOPERM") || refusesInsideScript(err)
}

// refusesInsideScript returns true if a script has met a command or key that its user has no right to, as servers before
// Redis 7.2 word it.
func refusesInsideScript(err error) bool {
	return hasCode(err, "ACL failure") || hasCode(err, "The user executing the script can't")
}

// notAllowed returns true if the user has no right to the script command or to a key. Nothing has run then, unlike after a
// refusal from inside a script.
func notAllowed(err error) bool {
	return hasCode(err, "NOPERM") && !fromScript(err)
}

// fromScript returns true if an error comes from inside a script, which may have written something before.
func fromScript(err error) bool {
	var inside *scriptError
	return errors.As(err, &inside) || strings.Contains(err.Error(), "@user_script") || strings.Contains(err.Error(), "in script")
}

// OutOfMemory returns true if the server is full. It refuses only the first write of a script for that, so the script has written
// nothing. err must not be nil.
func OutOfMemory(err error) bool { return hasCode(err, "OOM") }

// UnknownCommand returns true if the server does not have the command, or has it under another name. err must not be nil.
func UnknownCommand(err error) bool { return hasCode(err, "unknown command") }

// CrossSlot returns true if the server has refused the keys because they are in several slots. A client that the user takes
// for one server may lead to a Cluster, through a proxy for instance. err must not be nil.
func CrossSlot(err error) bool { return hasCode(err, "CROSSSLOT") }

// scriptError is an error from inside a script by a server before Redis 7. There the error code comes after "ERR Error
// running script (call to f_…): @user_script:1: ".
type scriptError struct {
	text string // begins with the code, as it does since Redis 7
	err  error  // as the server has sent it
}

func (e *scriptError) Error() string { return e.text }
func (e *scriptError) RedisError()   {}
func (e *scriptError) Unwrap() error { return e.err }

// unwrapScript returns a scriptError for an error that a server before Redis 7 has wrapped, and any other error unchanged.
func unwrapScript(err error) error {
	if !hasCode(err, "Error running script") {
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

// maxErrorText bounds the text of an error that a server has sent, in bytes. Those of Redis are shorter.
const maxErrorText = 512

// readableError is an error with a text on one line that is not long, of an error that has another.
type readableError struct {
	text string
	err  error
}

func (e *readableError) Error() string { return e.text }
func (e *readableError) Unwrap() error { return e.err }

// readable returns an error with a bounded text on one line, without characters that cannot be seen, because a server or a
// proxy may reply anything, and the text comes into logs and on terminals. It returns an error with such a text, and nil,
// unchanged.
func readable(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := foreign.Line(text, maxErrorText); shown != text {
		return &readableError{shown, err}
	}
	return err
}

// hasCode returns true if a server has answered with an error that begins with code.
func hasCode(err error, code string) bool { return strings.HasPrefix(replyText(err), code) }

// replyText returns the text of an error reply without what stands before its code: "ERR", or the "(error)" of services that
// send what redis-cli prints. It returns "" if err is no reply.
func replyText(err error) string {
	if err == nil {
		return ""
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	text := reply.Error()
	for trimmed := ""; text != trimmed; {
		trimmed = text
		for _, before := range []string{"ERR ", "(error) ", "-"} {
			text = strings.TrimPrefix(text, before)
		}
	}
	return text
}

// unknownScript returns true if the server has no script with that hash. Proxies and managed services send the code behind a
// text of their own.
func unknownScript(err error) bool {
	text := replyText(err)
	return strings.Contains(text, "NOSCRIPT") && !fromScript(err) && !UnknownCommand(err)
}

// Replied returns true if a server has answered. An error reply is an answer too.
func Replied(err error) bool {
	if err == nil {
		return true
	}
	var reply redis.Error
	return errors.As(err, &reply)
}

// ErrMisconfigured is what a [LastingError] is, for [errors.Is], unless the server refuses the user. Package core exports it.
var ErrMisconfigured = errors.New("holdfast: Redis and its client do not fit together")

// LastingError is an error of a command that waiting does not mend: the client is of the wrong kind, the address belongs to a
// replica, a certificate is refused, the server does not have a command or a database, or the user lacks a right. It must be
// returned at once, and never counts as an outage.
type LastingError struct {
	Err    error  // the reply of the server, or the error of the connection
	Advice string // what to do
}

// Error returns the advice, and behind it the text of the error without arguments of the command, because they are names.
func (e *LastingError) Error() string {
	text, _, _ := strings.Cut(e.Err.Error(), ", with args")
	return e.Advice + ": " + text
}

// Unwrap returns the error, and ErrMisconfigured unless the server refuses the user.
func (e *LastingError) Unwrap() []error {
	if RefusesUser(e.Err) {
		return []error{e.Err}
	}
	return []error{e.Err, ErrMisconfigured}
}

// Outcome returns Failed if a script may have written something before, and Rejected otherwise.
func (e *LastingError) Outcome() Outcome {
	if Classify(e.Err) == Failed {
		return Failed
	}
	return Rejected
}

// lasting returns a LastingError for an error that waiting does not mend, and any other error unchanged.
//
// MOVED, ASK and READONLY depend on the client, because a ClusterClient follows a slot that moves, and the client of a Sentinel
// group finds the new master. READONLY of a server that was a master before is a failover too, as behind a name of the DNS.
func (e *Executor) lasting(err error, keys []any) error {
	if err == nil {
		return nil
	}
	if advice := e.advice(err, keys); advice != "" {
		return &LastingError{err, advice}
	}
	return err
}

// advice returns what to do about the error of a command with these keys, and "" if waiting may help.
func (e *Executor) advice(err error, keys []any) string {
	switch {
	case e.Nodes.cluster == nil && (hasCode(err, "MOVED") || hasCode(err, "ASK")):
		return "this server is part of a Cluster: use redis.NewClusterClient, and hand the *redis.ClusterClient itself to holdfast"
	case ReadOnly(err) && e.onlyReplica():
		return "this server is a replica: connect to its master, or use redis.NewFailoverClient"
	case hasCode(err, "NOPERM") || refusesInsideScript(err):
		return e.missingRight(err, keys)
	case notLoggedIn(err):
		return "correct Username and Password of the Redis client"
	case CrossSlot(err):
		return "" // a caller may ask again with keys of one slot
	default:
		return Advice(err)
	}
}

// Advice returns what to do about an error that waiting does not mend, whatever the client is. It returns "" for all others, and
// for a missing right.
func Advice(err error) string {
	var notTLS tls.RecordHeaderError
	switch {
	case err == nil:
		return ""
	case UnknownCommand(err) && strings.Contains(err.Error(), "'sentinel'"):
		return "this server is no sentinel: correct the addresses of the Redis client, or use one for a single server"
	case UnknownCommand(err) || hasCode(err, "Unknown Redis command called from script"):
		return "this server does not have a command that locks need, or has it under another name: enable EVALSHA, EVAL and " +
			"the commands listed under \"Rights of the Redis user\" in docs/keys-and-rights.md"
	case badDatabase(err):
		return "this server does not have the database: correct DB in the options of the Redis client (a Cluster has only 0)"
	case CrossSlot(err):
		return "the address leads to a Cluster, whose slots split the keys of one script: use redis.NewClusterClient"
	case certificateRefused(err):
		return "this client refuses the certificate of Redis: correct RootCAs and ServerName of TLSConfig, or the certificate"
	case ownCertificateRefused(err):
		return "Redis refuses the TLS connection of this client: correct Certificates of TLSConfig, or what the server trusts"
	case errors.As(err, &notTLS):
		return "this server does not speak TLS at this port: correct the address, or TLSConfig"
	case wantsTLS(err):
		return "this server speaks TLS at this port: set TLSConfig, or a URL that begins with rediss"
	}
	return ""
}

// missingRight returns what a user has to be granted who was refused with err, for a command with these keys.
func (e *Executor) missingRight(err error, keys []any) string {
	const page = `, see "Rights of the Redis user" in docs/keys-and-rights.md`
	text := strings.ToLower(replyText(err))
	if command := namedCommand.FindStringSubmatch(text); command != nil {
		return "the Redis user needs the right +" + command[1] + page
	}
	switch {
	case strings.Contains(text, "channel"):
		return "the Redis user needs the channels &redisson_lock__channel:*" + page
	case strings.Contains(text, "key"):
		var patterns []string
		for _, key := range keys {
			name, _ := key.(string)
			if pattern := e.patternOf(name); !slices.Contains(patterns, pattern) {
				patterns = append(patterns, pattern)
			}
		}
		return "the Redis user needs the keys " + strings.Join(patterns, " and ") + page
	}
	return "the Redis user needs a further right" + page
}

// namedCommand finds the command that a user may not run.
var namedCommand = regexp.MustCompile(`run the '([^' ]+)' command`)

// patternOf returns the pattern of an ACL that covers a key.
func (e *Executor) patternOf(key string) string {
	switch {
	case strings.HasPrefix(key, ownKeys):
		return "~" + ownKeys + "*"
	case e.Prefix == "":
		return "~ of your names"
	}
	return "~" + e.Prefix + "*"
}

// ownKeys begins the keys that do not begin with the prefix of the client.
const ownKeys = "holdfast:"

// names returns the keys of the command.
func (c *Command) names() []any {
	end := firstKey + int(c.keys.n)
	if len(c.Args) < end {
		return nil
	}
	return c.Args[firstKey:end]
}

// SentinelAddr is what go-redis calls the address that Sentinel returned. During a failover it may lead to a replica.
const SentinelAddr = "FailoverClient"

// onlyReplica returns true if the server has never been seen as a master, and the client will not look for one.
func (e *Executor) onlyReplica() bool {
	if rdb, ok := e.Client.(*redis.Client); ok && rdb.Options().Addr == SentinelAddr {
		return false
	}
	return e.Nodes.cluster == nil && !e.masterSeen.Load()
}

// SeenMaster records that the server is, or was, a master. A later READONLY is a failover then, which ends by itself.
func (e *Executor) SeenMaster() { e.masterSeen.Store(true) }

// Unrecognized returns true for an answer that neither a Redis nor a script of this module gives, as proxies do. The command may
// have been executed. One such answer may be followed by a proper one, so a caller that waits asks again.
func Unrecognized(err error) bool {
	var known interface{ Unrecognized() bool }
	if errors.As(err, &known) {
		return known.Unrecognized()
	}
	var wait *waitError
	return err != nil && Classify(err) == Failed && (Replied(err) || noRedis(err)) && !errors.Is(err, ErrPanic) && !errors.As(err, &wait) &&
		!fromScript(err) && !RefusesUser(err) && Advice(err) == ""
}

// noRedis returns true if go-redis could not read a reply, because what has answered does not speak the protocol of Redis, or not
// always. err must not be nil.
func noRedis(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redis: can't parse ") || strings.Contains(text, "redis: invalid reply")
}

// TooManyFiles returns true if this process, or its host, has no file descriptor left for a connection. It returns false for nil.
func TooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// ReadOnly returns true if the server has refused a write because it is a replica. err must not be nil.
func ReadOnly(err error) bool { return hasCode(err, "READONLY") }

// badDatabase returns true if the server has refused SELECT. err must not be nil.
func badDatabase(err error) bool {
	return hasCode(err, "DB index is out of range") || hasCode(err, "invalid DB index") || hasCode(err, "SELECT is not allowed")
}

// certificateRefused returns true if this client does not accept the certificate of the server.
func certificateRefused(err error) bool {
	var refused *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &refused) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}

// handshakeAlerts are the TLS alerts, as crypto/tls names them, with which a server refuses a client. Others, such as "internal
// error", say nothing about the next connection.
var handshakeAlerts = []string{
	"certificate", "unknown certificate authority", "handshake failure", "protocol version not supported", "insufficient security level",
	"access denied", "unrecognized name", "no application protocol",
}

// ownCertificateRefused returns true if the server has refused the handshake of this client, mostly for its certificate.
func ownCertificateRefused(err error) bool {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return false
	}
	text := alert.Err.Error()
	return slices.ContainsFunc(handshakeAlerts, func(name string) bool { return strings.Contains(text, name) })
}

// wantsTLS returns true if a server has answered a plain connection with an alert of TLS. go-redis cannot parse that reply, and
// quotes it. Most servers close the connection without an alert, which looks like an outage.
func wantsTLS(err error) bool {
	return strings.Contains(err.Error(), `redis: can't parse "\x15\x03`) || strings.Contains(err.Error(), `redis: invalid reply: "\x15\x03`)
}
