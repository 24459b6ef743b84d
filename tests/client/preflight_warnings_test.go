package client_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// infoHook sees the INFO commands of a client; what it returns is the reply, if it is not empty.
type infoHook func(reply string) string

func (h infoHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h infoHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h infoHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if info, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			info.SetVal(h(info.Val()))
		}
		return err
	}
}

// inspected returns what a client warns of that has taken a lock, and has inspected the setup then.
func inspected(t *testing.T, rdb redis.UniversalClient) (warnings []string) {
	t.Helper()
	log := &coretest.Record{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	locks := coretest.NewClient(t, rdb, core.WithLogger(logger))
	if lease, err := locks.Mutex("name").TryLock(context.Background()); err == nil {
		coretest.Unlock(t, lease)
	}
	testkit.Eventually(t, coretest.Within, "the inspection", func() bool {
		return strings.Contains(log.String(), "setup of Redis inspected")
	})
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "level=DEBUG") {
			warnings = append(warnings, line)
		}
	}
	return warnings
}

// TestSetupIsInspected: each setting that loses locks is warned of once, what is harmless is not.
func TestSetupIsInspected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config map[string]string
		edit   infoHook
		want   string // in the log; empty: nothing is logged
	}{
		"sound":            {},
		"limit":            {config: map[string]string{"maxmemory": "64mb"}},
		"all keys":         {config: map[string]string{"maxmemory-policy": "allkeys-lru"}, want: "=allkeys-lru"},
		"keys that expire": {config: map[string]string{"maxmemory-policy": "volatile-ttl"}, want: "=volatile-ttl"},
		"limit and policy": {
			config: map[string]string{"maxmemory": "64mb", "maxmemory-policy": "volatile-lru"}, want: "maxmemory=67108864",
		},
		"old": {edit: func(reply string) string {
			_, version, _ := strings.Cut(reply, "redis_version:")
			version, _, _ = strings.Cut(version, "\r\n")
			return strings.Replace(reply, "redis_version:"+version, "redis_version:6.0.16", 1)
		}, want: "version=6.0.16"},
		"no persistence": {config: map[string]string{"save": ""}, want: "neither persistence nor replicas"},
		"snapshots":      {config: map[string]string{"save": "60 1"}},
		"append-only":    {config: map[string]string{"save": "", "appendonly": "yes"}},
		"replica": {config: map[string]string{"save": ""}, edit: func(reply string) string {
			return strings.Replace(reply, "connected_slaves:0", "connected_slaves:1", 1)
		}},
		"unknown": {edit: func(string) string { return "redis_version:unstable\r\nnonsense\r\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			for name, value := range test.config {
				rdb.ConfigSet(context.Background(), name, value)
			}
			if test.edit != nil {
				rdb.AddHook(test.edit)
			}
			warnings := inspected(t, rdb)
			if test.want == "" {
				if len(warnings) != 0 {
					t.Errorf("warned: %q", warnings)
				}
				return
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], test.want) ||
				!strings.Contains(warnings[0], "server="+server.Addr()) {
				t.Errorf("want one warning with %q and the address: %q", test.want, warnings)
			}
		})
	}
}

// TestReplicaIsFound: the only connection leads to a replica, which refuses every lock.
func TestReplicaIsFound(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	warnings := inspected(t, p.Replica.Client())
	if len(warnings) != 1 || !strings.Contains(warnings[0], "master="+p.Link.Addr()) {
		t.Errorf("want one warning that it is a replica, and of whom: %q", warnings)
	}
}

// TestEachMasterIsInspected: two of three masters of a Cluster evict.
func TestEachMasterIsInspected(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	for _, master := range cluster.Masters[1:] {
		master.Client().ConfigSet(context.Background(), "maxmemory-policy", "allkeys-random")
	}
	warnings := inspected(t, cluster.Client())
	text := strings.Join(warnings, "")
	if len(warnings) != 2 || !strings.Contains(text, cluster.Masters[1].Addr()) ||
		!strings.Contains(text, cluster.Masters[2].Addr()) {
		t.Errorf("want warnings of the two masters that evict: %q", warnings)
	}
}

// TestUnknownPersistence: a user of an ACL may lack the right to ask for the setting. Nothing is asked, and there is no warning.
func TestUnknownPersistence(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.Config("save", `""`))
	if warnings := inspected(t, coretest.Restricted(t, server, "+@all", "-config")); len(warnings) != 0 {
		t.Errorf("warned: %q", warnings)
	}
	if denied := server.Denied(); len(denied) != 0 {
		t.Errorf("Redis denied %q", denied)
	}
}

// TestForbiddenInspection: a user without the right to INFO works without it, and gets no warning.
func TestForbiddenInspection(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.Config("maxmemory-policy", "allkeys-lru"))
	if warnings := inspected(t, coretest.Restricted(t, server, "+@all", "-info")); len(warnings) != 0 {
		t.Errorf("warned: %q", warnings)
	}
}

// TestWarningsWithoutReader: no inspection is sent then. The other client, which inspects later, shows that there was time for it.
func TestWarningsWithoutReader(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	ask := infoHook(func(reply string) string { t.Error("INFO was sent"); return reply })
	errorsOnly := slog.New(slog.NewTextHandler(&coretest.Record{}, &slog.HandlerOptions{Level: slog.LevelError}))
	for _, logger := range []*slog.Logger{nil, errorsOnly} {
		rdb := server.Client()
		rdb.AddHook(ask)
		locks := coretest.NewClient(t, rdb, core.WithLogger(logger))
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	}
	coretest.NewClient(t, server.Client()) // takes no lock
	inspected(t, server.Client())
}

// TestCloseLeavesTheInspection: a client closes while INFO is not answered.
func TestCloseLeavesTheInspection(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	asked, goOn := make(chan struct{}), make(chan struct{})
	rdb.AddHook(infoHook(func(reply string) string { close(asked); <-goOn; return reply }))
	locks := coretest.NewClient(t, rdb)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	coretest.WaitFor(t, asked, "the inspection")
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	close(goOn)
}

// TestPanicInInspection: a hook of the user's client panics on a goroutine that is not the user's.
func TestPanicInInspection(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	rdb.AddHook(infoHook(func(string) string { panic("in INFO") }))
	warnings := inspected(t, rdb)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "panic in a hook") {
		t.Errorf("logged: %q", warnings)
	}
}

// TestNewConnectsToNothing: until a caller wants a lock.
func TestNewConnectsToNothing(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Error("New connects")
		return nil, net.ErrClosed
	}})
	defer rdb.Close()
	if err := coretest.NewClient(t, rdb).Close(); err != nil {
		t.Error(err)
	}
}
