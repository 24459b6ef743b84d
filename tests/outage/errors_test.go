package outage_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestEveryErrorOfAnOutage has each error that Redis, a proxy or the connection may give, as docs/redis.md lists them. What passes
// is an outage, and is asked again. What lasts is another error, after one request. Only an outage that nobody's requests can
// bring about opens a guard that fails open.
func TestEveryErrorOfAnOutage(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	remote := func(text string) error { return &net.OpError{Op: "remote error", Err: errors.New("tls: " + text)} }
	for name, test := range map[string]struct {
		err    error
		is     error // nil: only the error itself
		opens  bool
		advice string // in the text
	}{
		// What passes, and opens a guard.
		"refused":              {err: dial(syscall.ECONNREFUSED), is: core.ErrUnavailable, opens: true},
		"reset":                {err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, is: core.ErrUnavailable, opens: true},
		"end of stream":        {err: io.EOF, is: core.ErrUnavailable, opens: true},
		"no answer":            {err: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, is: core.ErrUnavailable, opens: true},
		"no such host":         {err: dial(&net.DNSError{Err: "no such host", Name: "redis", IsNotFound: true}), is: core.ErrUnavailable, opens: true},
		"pool":                 {err: redis.ErrPoolTimeout, is: core.ErrUnavailable},
		"LOADING":              {err: coretest.ErrorReply("LOADING Redis is loading the dataset in memory"), is: core.ErrUnavailable, opens: true},
		"MASTERDOWN":           {err: coretest.ErrorReply("MASTERDOWN Link with MASTER is down"), is: core.ErrUnavailable, opens: true},
		"CLUSTERDOWN":          {err: coretest.ErrorReply("CLUSTERDOWN The cluster is down"), is: core.ErrUnavailable, opens: true},
		"TRYAGAIN":             {err: coretest.ErrorReply("TRYAGAIN Multiple keys request during rehashing of slot"), is: core.ErrUnavailable, opens: true},
		"max clients":          {err: coretest.ErrorReply("ERR max number of clients reached"), is: core.ErrUnavailable, opens: true},
		"TLS: internal error":  {err: remote("internal error"), is: core.ErrUnavailable, opens: true},
		"TLS: close in flight": {err: &net.OpError{Op: "local error", Err: errors.New("tls: bad record MAC")}, is: core.ErrUnavailable, opens: true},

		// What passes, and requests may bring about, or the user has asked for.
		"BUSY":       {err: coretest.ErrorReply("BUSY Redis is busy running a script."), is: core.ErrUnavailable},
		"MISCONF":    {err: coretest.ErrorReply("MISCONF Redis is configured to save RDB snapshots"), is: core.ErrUnavailable},
		"NOREPLICAS": {err: coretest.ErrorReply("NOREPLICAS Not enough good replicas to write."), is: core.ErrUnavailable},
		"open files": {
			err: dial(os.NewSyscallError("socket", syscall.EMFILE)), is: core.ErrUnavailable, advice: "this process or its host has too many open files",
		},
		"open files of the host": {err: dial(os.NewSyscallError("socket", syscall.ENFILE)), is: core.ErrUnavailable, advice: "too many open files"},

		// What lasts.
		"MOVED":       {err: coretest.ErrorReply("MOVED 3999 127.0.0.1:6381"), is: core.ErrMisconfigured, advice: "use redis.NewClusterClient"},
		"ASK":         {err: coretest.ErrorReply("ASK 3999 127.0.0.1:6381"), is: core.ErrMisconfigured, advice: "use redis.NewClusterClient"},
		"CROSSSLOT":   {err: coretest.ErrorReply("CROSSSLOT Keys in request don't hash to the same slot"), is: core.ErrMisconfigured, advice: "use redis.NewClusterClient"},
		"READONLY":    {err: coretest.ErrorReply("READONLY You can't write against a read only replica."), is: core.ErrMisconfigured, advice: "connect to its master"},
		"no EVALSHA":  {err: coretest.ErrorReply("ERR unknown command 'evalsha', with args beginning with: '73bb' '4' 'lock:secret'"), is: core.ErrMisconfigured, advice: "EVALSHA"},
		"in a script": {err: coretest.ErrorReply("ERR Unknown Redis command called from script script: 73bb, on @user_script:4."), is: core.ErrMisconfigured, advice: "command"},
		"database":    {err: coretest.ErrorReply("ERR DB index is out of range"), is: core.ErrMisconfigured, advice: "correct DB"},
		"no SELECT":   {err: coretest.ErrorReply("ERR SELECT is not allowed in cluster mode"), is: core.ErrMisconfigured, advice: "correct DB"},
		"authority":   {err: x509.UnknownAuthorityError{}, is: core.ErrMisconfigured, advice: "RootCAs"},
		"host name":   {err: &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}}, is: core.ErrMisconfigured, advice: "ServerName"},
		"expired":     {err: x509.CertificateInvalidError{Reason: x509.Expired}, is: core.ErrMisconfigured, advice: "certificate"},
		"own":         {err: remote("bad certificate"), is: core.ErrMisconfigured, advice: "Certificates of TLSConfig"},
		"own missing": {err: remote("certificate required"), is: core.ErrMisconfigured, advice: "Certificates of TLSConfig"},
		"no sentinel": {
			err: fmt.Errorf("redis: all sentinels are unreachable: %w", coretest.ErrorReply("ERR unknown command 'sentinel', with args beginning with: 'x'")),
			is:  core.ErrMisconfigured, advice: "is no sentinel",
		},
		"no TLS":         {err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, is: core.ErrMisconfigured, advice: "does not speak TLS"},
		"TLS wanted":     {err: errors.New(`redis: can't parse "\x15\x03\x01\x00\x02\x02F"`), is: core.ErrMisconfigured, advice: "set TLSConfig"},
		"NOAUTH":         {err: coretest.ErrorReply("NOAUTH Authentication required."), is: core.ErrPermission, advice: "password"},
		"WRONGPASS":      {err: coretest.ErrorReply("WRONGPASS invalid username-password pair or user is disabled."), is: core.ErrPermission},
		"NOPERM command": {err: coretest.ErrorReply("NOPERM User locker has no permissions to run the 'evalsha' command"), is: core.ErrPermission, advice: "+evalsha"},
		"NOPERM key":     {err: coretest.ErrorReply("NOPERM No permissions to access a key"), is: core.ErrPermission, advice: "~lock:* and ~holdfast:*"},
		"WRONGTYPE":      {err: coretest.ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value"), is: core.ErrWrongType},
		"OOM":            {err: coretest.ErrorReply("OOM command not allowed when used memory > 'maxmemory'.")},
		"closed":         {err: redis.ErrClosed},
		"unknown":        {err: coretest.ErrorReply("ERR upstream failure")},
		"no Redis":       {err: errors.New(`redis: can't parse "HTTP/1.1 400 Bad Request"`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t, testkit.TCP())
			if name == "READONLY" { // of a server that is no master, whenever the client asks it for its role
				server.ReplicaOf(testkit.Start(t, testkit.TCP()).Addr())
			}
			rdb := server.Client()
			log := &coretest.Record{}
			locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
			scripts := coretest.FailScripts(rdb, test.err, coretest.Always)
			_, err := locks.Mutex("secret").TryLock(context.Background())
			sent := scripts.Sent.Load()
			passes := errors.Is(err, core.ErrUnavailable)
			if err == nil || !errors.Is(err, test.err) || test.is != nil && !errors.Is(err, test.is) || passes != (test.is == core.ErrUnavailable) {
				t.Errorf("error: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), test.advice) {
				t.Errorf("%q is not in the text %q", test.advice, err)
			}
			// CROSSSLOT is asked again with all keys in one slot, and what a script may have written is released.
			if passes && sent < 4 || !passes && sent > 2 {
				t.Errorf("%d requests", sent)
			}
			if guards.IsOutage(err) != test.opens {
				t.Errorf("opens a guard: %v", guards.IsOutage(err))
			}
			_, _ = locks.Mutex("secret").TryLock(context.Background())
			warned := strings.Count(log.String(), "locks do not work with this setup")
			want := 0
			if (test.is == core.ErrMisconfigured || test.is == core.ErrPermission) && name != "READONLY" && name != "CROSSSLOT" {
				want = 1
			}
			if warned != want || strings.Contains(log.String(), "secret") {
				t.Errorf("%d warnings, want %d: %s", warned, want, log)
			}
			scripts.Left.Store(0)
		})
	}
}
