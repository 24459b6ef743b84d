package rights_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	lockconformance "github.com/holdfast-go/holdfast/tests/conformance/lock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestMinimalUser does everything as a Redis user with just the rights that docs/keys-and-rights.md lists.
func TestMinimalUser(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	coretest.SetUser(t, server, coretest.DocumentedRules(t, "A Redis user needs"))
	doEverything(t, func() redis.UniversalClient {
		return server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	})
	coretest.NothingDenied(t, server)
}

// TestMinimalUserInCluster does the same in a Cluster.
func TestMinimalUserInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	coretest.LacksShards(t, cluster)
	rules := append(coretest.DocumentedRules(t, "A Redis user needs"), coretest.DocumentedRules(t, "In a Cluster it needs")...)
	for _, s := range cluster.Masters {
		coretest.SetUser(t, s, rules)
	}
	doEverything(t, func() redis.UniversalClient {
		return cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" })
	})
	locks := coretest.NewClient(t, cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(4*time.Second))
	slot := cluster.Slot("lock:name")
	migration := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
	migration.MoveKeys()
	coretest.AwaitRenewed(t, []*core.Lease{lease}, 5*time.Second)
	migration.End()
	coretest.Unlock(t, lease)
	for _, s := range cluster.Masters {
		coretest.NothingDenied(t, s)
	}
}

var allStrategies = flag.Bool("rights", false, "run the conformance suite on all strategies as a user with few rights")

// TestConformanceOfMinimalUser runs the whole suite as a user with just the rights that docs/keys-and-rights.md lists. By default it
// takes pairs that send all commands together, and three servers for a Redlock.
func TestConformanceOfMinimalUser(t *testing.T) {
	t.Parallel()
	user := &lockconformance.User{Name: "locker", Password: "secret", Rules: coretest.DocumentedRules(t, "A Redis user needs")}
	for name, pair := range coretest.Pairs {
		if pair.Prefix != "" || !*allStrategies && name != "ReadAndWrite" {
			continue // other prefixes are other keys
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := pair.On(nil)
			subject.User = user
			lockconformance.Run(t, subject)
		})
	}
	t.Run("Redlock", func(t *testing.T) {
		t.Parallel()
		subject := coretest.OnMasters(3)
		subject.User = user
		lockconformance.Run(t, subject)
	})
}

// TestMinimalUserOfRedlock locks with one server as such a user.
func TestMinimalUserOfRedlock(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	rules := coretest.DocumentedRules(t, "A Redis user needs")
	coretest.SetUser(t, three.Servers[0], rules)
	nodes := three.Clients()
	nodes[0] = three.Servers[0].Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithTTL(time.Second), core.WithRestartDelay(time.Second))
	lease := coretest.MustLock(t, r.Mutex("name"))
	three.AwaitHolders(t, "lock:name", 3)
	coretest.Unlock(t, lease)
	coretest.NothingDenied(t, three.Servers[0])
}

// TestRedlockWithoutInfo: a user without the right to INFO can lock, and is warned. Only WithRestartDelay needs it.
func TestRedlockWithoutInfo(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	rules := append(coretest.DocumentedRules(t, "A Redis user needs"), "-info")
	nodes := make([]redis.UniversalClient, 0, len(three.Servers))
	for _, s := range three.Servers {
		coretest.SetUser(t, s, rules)
		nodes = append(nodes, s.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	}
	log := new(coretest.Record)
	logger := core.WithLogger(coretest.TextLogger(log))
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), logger).Mutex("name")))
	if !strings.Contains(log.String(), "run id of a server of a Redlock is unknown") {
		t.Errorf("logged %q", log)
	}
	delayed := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithRestartDelay(coretest.Long), logger)
	_, err := delayed.Mutex("name").TryLock(t.Context())
	coretest.WantErr(t, err, core.ErrPermission)
}

// TestObserver reads all there is as the user that SECURITY.md has for that, which can change nothing.
func TestObserver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, locks.Fair("{a}name"))
	if err := coretest.MustBegin(t, locks.Once("{a}name", core.WithGroup())).Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	coretest.SetUser(t, server, append(coretest.RulesIn(t, "../../SECURITY.md", "An observer needs"), coretest.RulesIn(t, "../../SECURITY.md", "An observer that also lists needs")...))
	observer := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }),
		core.WithLogger(nil))
	if info, err := observer.Inspect(ctx, "{a}name"); err != nil || len(info.Holders) != 1 || info.Waiters != 0 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	if r, err := observer.Once("{a}name").Peek(ctx); err != nil || string(r.Value) != "value" {
		t.Errorf("Peek = %+v, %v", r, err)
	}
	if records, err := observer.GroupRecords(ctx, "{a}"); err != nil || len(records) != 1 {
		t.Errorf("Records = %+v, %v", records, err)
	}
	if err := listEveryWay(observer); err != nil {
		t.Errorf("listing: %v", err)
	}
	coretest.NothingDenied(t, server)

	before := server.Client().DBSize(ctx).Val()
	_, forced := observer.ForceUnlock(ctx, "{a}name")
	_, locked := observer.Mutex("b").TryLock(ctx)
	_, begun := observer.Once("b").Begin(ctx)
	for what, err := range map[string]error{
		"ForceUnlock": forced, "TryLock": locked, "Begin": begun, "Forget": coretest.ForgetNow(ctx, observer.Once("{a}name")),
		"Resolve": coretest.ResolveNow(ctx, observer.Once("b"), nil),
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
	if r := coretest.MustPeek(t, locks.Once("{a}name")); r.State != core.StateCompleted {
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
	coretest.SetUser(t, server, coretest.DocumentedRules(t, "A Redis user needs"))
	locks := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "wrong" }))
	calls := map[string]func() error{
		"Inspect": func() error { _, err := locks.Inspect(t.Context(), "name"); return err },
		"List":    func() error { return listEveryWay(locks) },
		"records": func() error { _, err := coretest.RecordPage(t.Context(), locks, "", "", 0); return err },
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
		if err := coretest.Receive(t, err); !errors.Is(err, core.ErrPermission) || errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
