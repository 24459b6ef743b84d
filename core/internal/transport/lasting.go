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
)

// ErrMisconfigured is what a [LastingError] is, for [errors.Is], unless the server refuses the user. Package core exports it.
var ErrMisconfigured = errors.New("holdfast: Redis and its client do not fit together")

// LastingError is an error of a command that waiting does not mend: the client is of the wrong kind, the address is that of a
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
// Why MOVED, ASK and READONLY depend on the client: a ClusterClient follows a slot that moves, and the client of a Sentinel
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
	if len(c.Args) < firstKey+c.keys.n {
		return nil
	}
	return c.Args[firstKey : firstKey+c.keys.n]
}

// SentinelAddr is what go-redis calls the address that Sentinel tells. During a failover it may be that of a replica.
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
// quotes it. Most servers close the connection without an alert, which cannot be told from an outage.
func wantsTLS(err error) bool {
	return strings.Contains(err.Error(), `redis: can't parse "\x15\x03`) || strings.Contains(err.Error(), `redis: invalid reply: "\x15\x03`)
}
