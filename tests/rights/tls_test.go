package rights_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// vault is a server that speaks TLS, demands certificates, and lets no client in without password: its only other user has
// just the rights of docs/keys-and-rights.md.
type vault struct {
	*testkit.Server
	authority *testkit.Authority
}

func newVault(t *testing.T) vault {
	t.Helper()
	a := testkit.NewAuthority(t)
	rules := strings.Join(coretest.DocumentedRules(t, "A Redis user needs"), " ")
	return vault{testkit.Start(t, testkit.TLS(a),
		testkit.Config("requirepass", "master"),
		testkit.Config("user", "locker on >secret resetchannels "+rules)), a}
}

func logIn(o *redis.Options) { o.Username, o.Password = "locker", "secret" }

func (v vault) client(edit ...func(*redis.Options)) *redis.Client {
	return v.TLSClient(v.authority.ClientConfig(), append([]func(*redis.Options){logIn}, edit...)...)
}

// TestTLS does everything over TLS, with a certificate and a password.
func TestTLS(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	doEverything(t, func() redis.UniversalClient { return v.client() })
	if denied := v.Denied(admin); len(denied) != 0 {
		t.Errorf("Redis denied %q", denied)
	}
}

// admin logs in, not over TLS, as the user that may do everything.
func admin(o *redis.Options) { o.Password = "master" }

// TestPushOverTLS: a release is heard, not found by looking, and a lease is renewed.
func TestPushOverTLS(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	holder, waiter := coretest.NewClient(t, v.client()), coretest.NewClient(t, v.client())
	lease := coretest.MustLock(t, holder.Fair("name"), core.WithTTL(6*time.Second))
	waiting := coretest.LockLater(waiter.Fair("name"))
	testkit.Eventually(t, coretest.Within, "somebody to wait", func() bool {
		info, err := waiter.Inspect(t.Context(), "name")
		return err == nil && len(info.Queue) == 1
	})
	coretest.AwaitRenewed(t, []*core.Lease{lease}, 9*time.Second/2)
	rdb := v.Client(admin)
	testkit.Eventually(t, coretest.Within, "a subscription", func() bool {
		return strings.Contains(rdb.ClientList(t.Context()).Val(), " sub=1 ")
	})
	coretest.Unlock(t, lease)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
	var ran atomic.Int64
	result, err := waiter.Once("name").Do(t.Context(), coretest.Answers(&ran, "value"))
	if err != nil || string(result.Value) != "value" {
		t.Errorf("Once: %+v, %v", result, err)
	}
	for line := range strings.Lines(rdb.ClientList(t.Context()).Val()) {
		if strings.Contains(line, "user=locker") && !strings.Contains(line, "127.0.0.1:") {
			t.Errorf("not over TLS: %s", line)
		}
	}
}

// TestLoginRefused: a client that cannot be sure of the server, or is not let in by it, is told so soon, and nothing is locked.
func TestLoginRefused(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	stranger := testkit.NewAuthority(t)
	mixed := v.authority.ClientConfig()
	mixed.Certificates = stranger.ClientConfig().Certificates
	none := v.authority.ClientConfig()
	none.Certificates = nil
	other := v.authority.ClientConfig()
	other.ServerName = "redis.example.com"
	unknown := v.authority.ClientConfig()
	unknown.RootCAs = nil // the roots of the system
	for name, test := range map[string]struct {
		rdb    *redis.Client
		says   string
		is     error // ErrUnavailable only if nothing tells an outage from what never passes
		closes bool  // the server closes the connection behind its answer, so a client may see only the end
	}{
		"another authority's server": {v.TLSClient(stranger.ClientConfig(), logIn), "certificate", core.ErrMisconfigured, false},
		"no authority":               {v.TLSClient(unknown, logIn), "certificate", core.ErrMisconfigured, false},
		"another host's server":      {v.TLSClient(other, logIn), "redis.example.com", core.ErrMisconfigured, false},
		"another authority's client": {v.TLSClient(mixed, logIn), "refuses the tls connection", core.ErrMisconfigured, true},
		"no certificate":             {v.TLSClient(none, logIn), "refuses the tls connection", core.ErrMisconfigured, true},
		"old TLS":                    {v.TLSClient(oldest(v.authority), logIn), "refuses the tls connection", core.ErrMisconfigured, true},
		"no TLS":                     {v.TLSClient(nil, logIn), "", core.ErrUnavailable, false},
		"wrong password": {
			v.client(func(o *redis.Options) { o.Password = "wrong" }), "wrongpass", core.ErrPermission, false,
		},
		"wrong user":  {v.client(func(o *redis.Options) { o.Username = "nobody" }), "wrongpass", core.ErrPermission, false},
		"no password": {v.client(func(o *redis.Options) { o.Username, o.Password = "default", "" }), "auth", core.ErrPermission, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer test.rdb.Close()
			isNotLetIn(t, test.rdb, test.says, test.is, test.closes)
		})
	}
	t.Cleanup(func() {
		if keys := v.Client(admin).Keys(context.Background(), "*").Val(); len(keys) != 0 {
			t.Errorf("in Redis: %q", keys)
		}
	})
}

// connectionEnded reports whether a connection was closed by the server.
func connectionEnded(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isNotLetIn checks what each call returns on a connection that the server refuses, and that no password is in it.
func isNotLetIn(t *testing.T, rdb *redis.Client, says string, is error, closes bool) {
	log := &coretest.Record{}
	locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
	ctx, wait := t.Context(), coretest.Within // for an answer, which ends it
	if is == core.ErrUnavailable {
		wait = time.Second // there is none, so it passes
	}
	for what, lock := range map[string]func() error{
		"TryLock":   func() error { _, err := locks.Mutex("name").TryLock(ctx); return err },
		"Lock":      func() error { _, err := locks.Fair("name").Lock(ctx); return err },
		"Begin":     func() error { _, err := locks.Once("name").Begin(ctx); return err },
		"Inspect":   func() error { _, err := locks.Inspect(ctx, "name"); return err },
		"with wait": func() error { _, err := locks.Mutex("name").Lock(ctx, core.WithWait(wait)); return err },
	} {
		err, want := lock(), says
		if what == "with wait" && is == core.ErrUnavailable {
			want = "" // the wait may have ended before the connection has failed
		}
		if closes && errors.Is(err, core.ErrUnavailable) && connectionEnded(err) {
			continue
		}
		if !errors.Is(err, is) || errors.Is(err, core.ErrUnavailable) != (is == core.ErrUnavailable) ||
			!strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password: %v", what, err)
		}
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the password: %s", log)
	}
}

// oldest is a client that knows of nothing newer than TLS 1.1.
func oldest(a *testkit.Authority) *tls.Config {
	c := a.ClientConfig()
	c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return c
}
