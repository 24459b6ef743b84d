package testkit_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestServersArePrivate(t *testing.T) {
	t.Parallel()
	a, b := testkit.Start(t), testkit.Start(t)
	if a.Network() != "unix" || a.Port() != 0 {
		t.Errorf("address is %s %s, want a unix socket", a.Network(), a.Addr())
	}
	if err := a.Client().Set(t.Context(), "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Client().Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("the other server: EXISTS = %d, %v", n, err)
	}
}

func TestServerIsRemoved(t *testing.T) {
	t.Parallel()
	var addr string
	failure := record(t, func(tb testing.TB) {
		srv := testkit.Start(tb)
		addr = srv.Addr()
		srv.Pause() // is no protection
	})
	if failure != "" {
		t.Fatal(failure)
	}
	if _, err := os.Stat(filepath.Dir(addr)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's directory is still there: %v", err)
	}
}

// Not parallel, so that it sees no goroutines of other tests come up.
func TestSupervisorFunction(t *testing.T) {
	before := goleak.IgnoreCurrent()
	testkit.Start(t)
	if err := goleak.Find(before, goleak.IgnoreAnyFunction(testkit.SupervisorFunction)); err != nil {
		t.Error(err)
	}
}

func TestTCP(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t, testkit.TCP())
	host, _, err := net.SplitHostPort(srv.Addr())
	if err != nil || host != "127.0.0.1" || srv.Port() == 0 {
		t.Errorf("address is %s, port %d", srv.Addr(), srv.Port())
	}
	warm(t, srv.Client())
}

func TestConfig(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t,
		testkit.Config("maxmemory", "4mb"),
		testkit.Config("client-output-buffer-limit", "pubsub 1mb 512kb 7"),
		testkit.Config("save", "900 1"))
	rdb := srv.Client()
	for name, want := range map[string]string{
		"maxmemory": "4194304", "save": "900 1", "appendonly": "no",
	} {
		got, err := rdb.ConfigGet(t.Context(), name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q, %v, want %q", name, got[name], err, want)
		}
	}
	limits := rdb.ConfigGet(t.Context(), "client-output-buffer-limit").Val()["client-output-buffer-limit"]
	if !strings.HasSuffix(limits, "pubsub 1048576 524288 7") {
		t.Errorf("buffer limits are %q", limits)
	}
	if err := rdb.Do(t.Context(), "debug", "sleep", "0").Err(); err != nil {
		t.Errorf("DEBUG is not allowed: %v", err)
	}
}

func TestPauseResume(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	rdb := warm(t, srv.Client(once))
	srv.Pause()
	var netErr net.Error
	if err := impatient(rdb).Incr(t.Context(), "n").Err(); !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Fatalf("INCR on a paused server: %v, want a timeout", err)
	}
	srv.Resume()
	// The client is gone, its request was in the socket.
	testkit.Eventually(t, patience, "the request is executed after all", func() bool {
		return srv.CommandStats()["incr"].Calls == 1
	})
}

func TestKillRestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts []testkit.Option
		want string
	}{
		"unix":     {nil, ""},
		"tcp":      {[]testkit.Option{testkit.TCP()}, ""},
		"unix aof": {[]testkit.Option{testkit.AOF()}, "v"},
		"tcp aof":  {[]testkit.Option{testkit.AOF(), testkit.TCP()}, "v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t, tc.opts...)
			rdb := srv.Client(once)
			if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			srv.Kill()
			srv.Kill()
			if err := rdb.Ping(t.Context()).Err(); err == nil {
				t.Error("the killed server answers")
			}
			pid := ""
			for range 2 { // the second one has to kill the server itself
				srv.Restart()
				got, err := srv.Client().Get(t.Context(), "k").Result()
				if got != tc.want || err != nil && !errors.Is(err, redis.Nil) {
					t.Errorf("after restart GET = %q, %v, want %q", got, err, tc.want)
				}
				was := pid
				if pid = srv.Info("server", "process_id"); pid == was {
					t.Error("the server was not restarted")
				}
			}
		})
	}
}

func TestCommandStats(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	rdb := srv.Client()
	for range 3 {
		rdb.Incr(t.Context(), "n")
	}
	rdb.LPush(t.Context(), "n", "wrong type")
	stats := srv.CommandStats()
	if got := stats["incr"]; got.Calls != 3 || got.Failed != 0 {
		t.Errorf("INCR: %+v", got)
	}
	if got := stats["lpush"]; got.Calls != 1 || got.Failed != 1 {
		t.Errorf("LPUSH: %+v", got)
	}
	if got := srv.Info("keyspace", "db0"); !strings.HasPrefix(got, "keys=1,") {
		t.Errorf("keyspace: %q", got)
	}
}

func TestFailuresAreExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fn   func(tb testing.TB)
		want string
	}{
		"bad directive": {func(tb testing.TB) {
			testkit.Start(tb, testkit.Config("no-such-directive", "1"))
		}, "no-such-directive"},
		"no such field": {func(tb testing.TB) {
			testkit.Start(tb).Info("server", "nonesuch")
		}, "has no field nonesuch"},
		"pause after kill": {func(tb testing.TB) {
			srv := testkit.Start(tb)
			srv.Kill()
			srv.Pause()
		}, "does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record(t, tc.fn); !strings.Contains(got, tc.want) {
				t.Errorf("failure is %q, want one with %q", got, tc.want)
			}
		})
	}
}

func TestNoServerProgram(t *testing.T) {
	t.Setenv("HOLDFAST_REDIS_SERVER", filepath.Join(t.TempDir(), "nonesuch"))
	failure := record(t, func(tb testing.TB) { testkit.Start(tb) })
	if !strings.Contains(failure, "apt-get install redis-server") {
		t.Errorf("failure is %q", failure)
	}
}

// A server before 7.0 does not know enable-debug-command.
func TestOldServer(t *testing.T) {
	program, err := exec.LookPath(cmp.Or(os.Getenv("HOLDFAST_REDIS_SERVER"), "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old-server")
	script := "#!/bin/sh\n" +
		"if grep enable-debug-command \"$1\"; then echo 'Bad directive'; exit 1; fi\n" +
		"exec " + program + " \"$@\"\n"
	if err := os.WriteFile(old, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_REDIS_SERVER", old)
	srv := testkit.Start(t)
	warm(t, srv.Client())
	srv.Restart()
	warm(t, srv.Client())
}

// TestFrozenAtTheEnd leaves commands in flight to a frozen server, directly and through a relay: the cleanup has
// to end all the same.
func TestFrozenAtTheEnd(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	relay := srv.Relay()
	clients := []*redis.Client{srv.Client(), relay.Client()}
	for _, rdb := range clients {
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	relay.Hold(testkit.ToServer)
	srv.Pause()
	for _, rdb := range clients {
		go func() { _ = rdb.Ping(context.Background()).Err() }()
	}
	testkit.Eventually(t, 10*time.Second, "a request to be in flight", func() bool {
		return relay.Held(testkit.ToServer) > 0
	})
}

// TestAgain: the command names this test alone, even if its name has characters of a regular expression.
func TestAgain(t *testing.T) {
	t.Run("1 + 1", func(t *testing.T) {
		t.Setenv("HOLDFAST_REDIS_SERVER", "/old/redis-server")
		got := strings.Replace(testkit.Again(t, "-seed=7"), " -race", "", 1)
		const want = `to run this again: HOLDFAST_REDIS_SERVER=/old/redis-server go test -count=1 -run '^TestAgain$/^1_\+_1$' ` +
			`github.com/holdfast-go/holdfast/tests/testkit -seed=7`
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
