package core_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/conformance/lock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMinimalUser does everything as a Redis user with just the rights that docs/redis.md lists.
func TestMinimalUser(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	setUser(t, server, documentedRules(t, "A Redis user needs"))
	doEverything(t, func() redis.UniversalClient {
		return server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	})
	nothingDenied(t, server)
}

// TestMinimalUserInCluster does the same in a Cluster.
func TestMinimalUserInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	lacksShards(t, cluster)
	rules := append(documentedRules(t, "A Redis user needs"), documentedRules(t, "In a Cluster it needs")...)
	for _, s := range cluster.Masters {
		setUser(t, s, rules)
	}
	doEverything(t, func() redis.UniversalClient {
		return cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" })
	})
	locks := newClient(t, cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }))
	lease := mustLock(t, locks.Mutex("name"), core.WithTTL(4*time.Second))
	slot := cluster.Slot("lock:name")
	migration := cluster.BeginMigration(slot, servedElsewhere(cluster, slot))
	migration.MoveKeys()
	awaitRenewed(t, []*core.Lease{lease}, 5*time.Second)
	migration.End()
	unlock(t, lease)
	for _, s := range cluster.Masters {
		nothingDenied(t, s)
	}
}

var allStrategies = flag.Bool("rights", false, "run the conformance suite on all strategies as a user with few rights")

// TestConformanceOfMinimalUser runs the whole suite as a user with just the rights that docs/redis.md lists. By default it
// takes pairs that send all commands together, and three servers for a Redlock.
func TestConformanceOfMinimalUser(t *testing.T) {
	t.Parallel()
	user := &lockconformance.User{Name: "locker", Password: "secret", Rules: documentedRules(t, "A Redis user needs")}
	for name, pair := range pairs {
		if pair.prefix != "" || !*allStrategies && name != "ReadAndWrite" {
			continue // other prefixes are other keys
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := pair.on(nil)
			subject.User = user
			lockconformance.Run(t, subject)
		})
	}
	t.Run("Redlock", func(t *testing.T) {
		t.Parallel()
		subject := onMasters(3)
		subject.User = user
		lockconformance.Run(t, subject)
	})
}

// TestMinimalUserOfRedlock locks with one server as such a user.
func TestMinimalUserOfRedlock(t *testing.T) {
	t.Parallel()
	three := startMasters(t, 3)
	rules := documentedRules(t, "A Redis user needs")
	setUser(t, three.servers[0], rules)
	nodes := three.clients()
	nodes[0] = three.servers[0].Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	r := newRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithTTL(time.Second), core.WithRestartDelay(time.Second))
	lease := mustLock(t, r.Mutex("name"))
	three.awaitHolders(t, "lock:name", 3)
	unlock(t, lease)
	nothingDenied(t, three.servers[0])
}

// TestRedlockWithoutInfo: a user without the right to INFO can lock, and is warned. Only WithRestartDelay needs it.
func TestRedlockWithoutInfo(t *testing.T) {
	t.Parallel()
	three := startMasters(t, 3)
	rules := append(documentedRules(t, "A Redis user needs"), "-info")
	nodes := make([]redis.UniversalClient, 0, len(three.servers))
	for _, s := range three.servers {
		setUser(t, s, rules)
		nodes = append(nodes, s.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	}
	log := new(record)
	logger := core.WithLogger(textLogger(log))
	unlock(t, mustLock(t, newRedlock(t, nodes, core.WithNodeTimeout(time.Second), logger).Mutex("name")))
	if !strings.Contains(log.String(), "run id of a server of a Redlock is unknown") {
		t.Errorf("logged %q", log)
	}
	delayed := newRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithRestartDelay(long), logger)
	_, err := delayed.Mutex("name").TryLock(t.Context())
	wantErr(t, err, core.ErrPermission)
}

// TestObserver reads all there is as the user that SECURITY.md has for that, which can change nothing.
func TestObserver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	locks := newClient(t, server.Client(), core.WithTTL(long))
	lease := mustLock(t, locks.Fair("{a}name"))
	if err := mustBegin(t, locks.Once("{a}name", core.WithGroup())).Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	setUser(t, server, append(rulesIn(t, "../SECURITY.md", "An observer needs"), rulesIn(t, "../SECURITY.md", "An observer that also lists needs")...))
	observer := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }),
		core.WithLogger(nil))
	if info, err := observer.Inspect(ctx, "{a}name"); err != nil || len(info.Holders) != 1 || info.Waiters != 0 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	if r, err := observer.Once("{a}name").Peek(ctx); err != nil || string(r.Value) != "value" {
		t.Errorf("Peek = %+v, %v", r, err)
	}
	if records, err := observer.Records(ctx, "{a}"); err != nil || len(records) != 1 {
		t.Errorf("Records = %+v, %v", records, err)
	}
	if err := listEveryWay(observer); err != nil {
		t.Errorf("listing: %v", err)
	}
	nothingDenied(t, server)

	before := server.Client().DBSize(ctx).Val()
	_, forced := observer.ForceUnlock(ctx, "{a}name")
	_, locked := observer.Mutex("b").TryLock(ctx)
	_, begun := observer.Once("b").Begin(ctx)
	for what, err := range map[string]error{
		"ForceUnlock": forced, "TryLock": locked, "Begin": begun, "Forget": forgetNow(ctx, observer.Once("{a}name")),
		"Resolve": resolveNow(ctx, observer.Once("b"), nil),
		"PUBLISH": server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }).
			Publish(ctx, "redisson_lock__channel:{lock:b}", "0").Err(),
	} {
		if err == nil {
			t.Errorf("%s works", what)
		}
	}
	info, err := locks.Inspect(ctx, "{a}name")
	if err != nil || len(info.Holders) != 1 || info.Holders[0].Owner != lease.Owner() {
		t.Errorf("after that: %+v, %v", info, err)
	}
	if r := mustPeek(t, locks.Once("{a}name")); r.State != core.StateCompleted {
		t.Errorf("after that: %+v", r)
	}
	if keys := server.Client().Keys(ctx, "*").Val(); len(keys) != int(before) {
		t.Errorf("left %q", keys)
	}
}

// TestWrongPassword: every call says so, whether its commands are sent alone or in a batch.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	setUser(t, server, documentedRules(t, "A Redis user needs"))
	locks := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "wrong" }))
	calls := map[string]func() error{
		"Inspect": func() error { _, err := locks.Inspect(t.Context(), "name"); return err },
		"List":    func() error { return listEveryWay(locks) },
		"records": func() error { _, err := locks.ListRecords(t.Context(), "", "", 0); return err },
	}
	for i := range 20 {
		calls[fmt.Sprint("TryLock ", i)] = func() error { _, err := locks.Mutex(fmt.Sprint(i)).TryLock(t.Context()); return err }
	}
	failed := make(map[string]<-chan error)
	for name, call := range calls {
		err := make(chan error, 1)
		go func() { err <- call() }()
		failed[name] = err
	}
	for name, err := range failed {
		if err := receive(t, err); !errors.Is(err, core.ErrPermission) || errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
