package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
	"github.com/holdfast-go/holdfast/core"
)

// connection are the flags that say where Redis is.
type connection struct {
	Redis        string `group:"all" placeholder:"URL" help:"URL of Redis. Defaults to $$HOLDFAST_REDIS, then $$REDIS_URL, then redis://localhost:6379. A password belongs into one of these variables, into $$HOLDFAST_REDIS_PASSWORD or into a file: other users can read arguments."`
	RedisUser    string `group:"all" placeholder:"USER" env:"HOLDFAST_REDIS_USER" help:"User of Redis, in place of the user in the URL."`
	PasswordFile string `group:"all" placeholder:"FILE" env:"HOLDFAST_REDIS_PASSWORD_FILE" help:"File with the password of Redis."`
	TLSCA        string `group:"all" name:"tls-ca" placeholder:"FILE" env:"HOLDFAST_TLS_CA" help:"Certificates of the authorities to trust."`
	TLSCert      string `group:"all" name:"tls-cert" placeholder:"FILE" env:"HOLDFAST_TLS_CERT" help:"Certificate of this client."`
	TLSKey       string `group:"all" name:"tls-key" placeholder:"FILE" env:"HOLDFAST_TLS_KEY" help:"Key of that certificate."`
	Prefix       string `group:"all" default:"lock:" env:"HOLDFAST_PREFIX" help:"Prefix of the names in Redis, as of core.WithPrefix."`
	NoPrefix     bool   `group:"all" help:"Names have no prefix, as those of Redisson."`
}

const (
	defaultURL    = "redis://localhost:6379"
	defaultPrefix = "lock:"
)

var errPasswordSeen = usageError("the URL among the arguments has a password, which other users of this host can read: " +
	"set HOLDFAST_REDIS, HOLDFAST_REDIS_PASSWORD or --password-file instead")

// prefix returns the prefix of the names. A variable of the environment that is empty counts as one that is not set.
func (c connection) prefix() string {
	if c.NoPrefix {
		return ""
	}
	return cmp.Or(c.Prefix, defaultPrefix)
}

// settings returns the settings of the connection.
func (c connection) settings() (connect.Settings, error) {
	if connect.HasPassword(c.Redis) {
		return connect.Settings{}, errPasswordSeen
	}
	return connect.Settings{
		URL:      cmp.Or(c.Redis, os.Getenv("HOLDFAST_REDIS"), os.Getenv("REDIS_URL"), defaultURL),
		Username: c.RedisUser, Password: os.Getenv("HOLDFAST_REDIS_PASSWORD"), PasswordFile: c.PasswordFile,
		CAFile: c.TLSCA, CertFile: c.TLSCert, KeyFile: c.TLSKey,
	}, nil
}

// hint returns a possible cause of an error, or what the URL should be. TLS is a cause, because a server without it does not reply at
// all. To a sentinel that has no master of the name, go-redis says only "redis: nil".
func (c connection) hint(err error) string {
	settings, invalid := c.settings()
	switch {
	case err == nil || invalid != nil:
		return ""
	case errors.Is(err, core.ErrMisconfigured) && strings.Contains(err.Error(), "READONLY"):
		return " (to follow a failover, use the URL redis+sentinel://HOST:26379/MASTER)"
	case strings.Contains(err.Error(), "sentinels") && strings.HasSuffix(err.Error(), "redis: nil"):
		return " (does a master have this name?)"
	case errors.Is(err, core.ErrUnavailable) && strings.HasPrefix(settings.URL, "rediss"):
		return " (the URL asks for TLS: does the server have it at this port?)"
	}
	return ""
}

// clients are what a command talks to Redis with. The caller must call close.
type clients struct {
	redis    redis.UniversalClient
	locks    *core.Client
	prefix   string
	server   string // its URL, without user and password
	withdraw bool   // a request for a lock or a run has failed, which Redis may grant all the same
}

// These bound the end of the clients, and so for how long the program outlasts -w while Redis does not reply. What is not
// released by then expires.
const (
	closeTimeout = 500 * time.Millisecond
	// withdrawTimeout is enough for a slow Redis to answer on a new connection. It is longer because a request that is not withdrawn
	// holds the lock for its TTL, although no process has it.
	withdrawTimeout = 3 * time.Second
)

// close ends both clients. It releases what is still held. While Redis does not reply, it gives up after its timeout: the
// process ends right after it.
func (c *clients) close() {
	closed, timeout := make(chan struct{}), closeTimeout
	if c.withdraw {
		timeout = withdrawTimeout
	}
	go func() {
		defer close(closed)
		_ = c.locks.Close()
		_ = c.redis.Close()
	}()
	select {
	case <-closed:
	case <-time.After(timeout):
	}
}

// where returns what the names of a list are relative to.
func (c *clients) where() string { return fmt.Sprintf("prefix %q on %s", c.prefix, c.server) }

// report says on standard error where the output comes from, except for programs that read JSON. If nothing was found, it says that
// instead. If nobody reads the output, nobody reads this.
func (c *clients) report(env *environment, found bool, nothing string) {
	switch {
	case env.stdout.failed != nil:
	case !found:
		c.explainNothing(env, nothing)
	case !env.flags.JSON:
		fmt.Fprintln(env.stderr, "holdfast:", c.where())
	}
}

// lookTimeout bounds the look for anything under the prefix, which is only for a message.
const lookTimeout = 5 * time.Second

// explainNothing says on standard error that nothing was found, and whether the prefix has nothing at all: then it is
// probably the prefix of other services.
func (c *clients) explainNothing(env *environment, found string) {
	ctx, cancel := context.WithTimeout(env.ctx, lookTimeout)
	defer cancel()
	text := found
	if empty, err := c.isEmpty(ctx); err == nil && empty {
		text = "no lock is held and no record exists: set the prefix of your services with --prefix or HOLDFAST_PREFIX, or Redis has lost its data"
	}
	fmt.Fprintf(env.stderr, "holdfast: %s, %s\n", c.where(), text)
}

// isEmpty reports whether there is no lock and no record under the prefix.
func (c *clients) isEmpty(ctx context.Context) (bool, error) {
	for _, err := range c.locks.Locks(ctx, "") {
		return false, err
	}
	for _, err := range c.locks.Records(ctx, "") {
		return false, err
	}
	return true, nil
}

// open returns clients with options.
func (env *environment) open(opts ...core.Option) (*clients, error) {
	connect.Silence()
	settings, err := env.flags.Connection.settings()
	if err != nil {
		return nil, err
	}
	rdb, err := connect.Open(settings)
	if err != nil {
		return nil, usageError("%s", err)
	}
	prefix := env.flags.Connection.prefix()
	locks, err := core.New(rdb, append(opts, core.WithPrefix(prefix), core.WithLogger(env.logger()))...)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &clients{redis: rdb, locks: locks, prefix: prefix, server: connect.Server(settings.URL)}, nil
}

// logger returns the logger of the library. Without --verbose it is silent, because cron sends a mail for each line.
func (env *environment) logger() *slog.Logger {
	if !env.flags.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(env.stderr, nil))
}
