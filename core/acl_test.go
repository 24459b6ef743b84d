package core_test

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/conformance"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestMinimalUser does everything as a Redis user with just the rights that docs/redis.md lists.
func TestMinimalUser(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	setUser(t, server, documentedRules(t, "A Redis user needs"))
	doEverything(t, func() redis.UniversalClient {
		return server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" })
	})
	nothingDenied(t, server)
}

// TestMinimalUserInCluster does the same in a Cluster.
func TestMinimalUserInCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
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
	user := &conformance.User{Name: "locker", Password: "secret", Rules: documentedRules(t, "A Redis user needs")}
	for name, pair := range pairs {
		if pair.prefix != "" || !*allStrategies && name != "ReadAndWrite" {
			continue // other prefixes are other keys
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := pair.on(nil)
			subject.User = user
			conformance.Run(t, subject)
		})
	}
	t.Run("Redlock", func(t *testing.T) {
		t.Parallel()
		subject := onMasters(3)
		subject.User = user
		conformance.Run(t, subject)
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
	r := newRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithRestartDelay(time.Millisecond))
	lease := mustLock(t, r.Mutex("name"))
	three.awaitHolders(t, "lock:name", 3)
	unlock(t, lease)
	nothingDenied(t, three.servers[0])
}

// TestRedlockWithoutInfo: a user who may not call INFO can lock, and is warned. Only WithRestartDelay needs it.
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
	delayed := newRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithRestartDelay(time.Millisecond), logger)
	_, err := delayed.Mutex("name").TryLock(t.Context())
	wantErr(t, err, core.ErrPermission)
}

// TestObserver reads all there is as the user that SECURITY.md has for that, who can change nothing.
func TestObserver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := redistest.Start(t)
	locks := newClient(t, server.Client(), core.WithTTL(long))
	lease := mustLock(t, locks.Fair("{a}name"))
	if err := mustBegin(t, locks.Once("{a}name", core.WithGroup())).Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	setUser(t, server, rulesIn(t, "../SECURITY.md", "An observer needs"))
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
	nothingDenied(t, server)

	before := server.Client().DBSize(ctx).Val()
	_, forced := observer.ForceUnlock(ctx, "{a}name")
	_, locked := observer.Mutex("b").TryLock(ctx)
	_, begun := observer.Once("b").Begin(ctx)
	for what, err := range map[string]error{
		"ForceUnlock": forced, "TryLock": locked, "Begin": begun, "Forget": observer.Once("{a}name").Forget(ctx),
		"Resolve": observer.Once("b").Resolve(ctx, nil),
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

// setUser makes the user "locker" with these rights alone.
func setUser(t testing.TB, s *redistest.Server, rules []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "locker", "reset", "on", ">secret", "resetchannels"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := s.Client().Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// doEverything uses all there is of locks, with connections of a restricted user.
func doEverything(t *testing.T, connect func() redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	locks, other := newClient(t, connect()), newClient(t, connect())
	outer := mustLock(t, locks.Mutex("name"), core.WithTTL(10*time.Second), core.WithMinHold(20*time.Millisecond))
	inner := mustLockWith(t, outer.Context(), locks.Mutex("name"))
	if err := inner.Extend(ctx, 20*time.Second); err != nil {
		t.Errorf("extend: %v", err)
	}
	waiting := lockLater(other.Mutex("name"))
	awaitListeners(t, other, "name", 1)
	unlock(t, inner)
	unlock(t, outer)
	if err := receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
	for name, strategy := range strategies(locks) {
		enterEveryWay(t, name, strategy, strategies(other)[name])
	}
	joint := mustLock(t, core.Multi(locks.Mutex("a"), locks.Mutex("b")))
	unlock(t, mustLockWith(t, joint.Context(), core.Multi(foreign{locks.Mutex("a")}, foreign{locks.Mutex("c")})))
	unlock(t, joint)
	_, err := core.Multi(locks.Mutex("a"), other.Mutex("a")).TryLock(ctx)
	wantErr(t, err, core.ErrInvalidOption)
	mustLock(t, locks.Mutex("name"))
	if forced, err := other.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	endEveryWay(t, locks, other, "name")
	countEveryWay(t, locks, other)
}

func nothingDenied(t *testing.T, server *redistest.Server) {
	t.Helper()
	for _, what := range server.Denied() {
		t.Errorf("Redis denied %s", what)
	}
}

// strategies returns all strategies of a client, by name.
func strategies(c *core.Client) map[string]core.Strategy {
	return map[string]core.Strategy{
		"Mutex": c.Mutex, "Fair": c.Fair, "Read": c.Read, "Write": c.Write,
		"FairRead": c.FairRead, "FairWrite": c.FairWrite,
	}
}

// enterEveryWay locks a name, enters again, prolongs, and lets somebody wait and somebody give up.
func enterEveryWay(t testing.TB, name string, lock, other core.Strategy) {
	t.Helper()
	ctx := context.Background()
	outer := mustLock(t, lock(name), core.WithTTL(3*time.Second))
	inner := mustLockWith(t, outer.Context(), lock(name))
	if err := inner.Extend(ctx, 5*time.Second); err != nil {
		t.Errorf("%s: extend: %v", name, err)
	}
	waiting := lockLater(other(name))
	if lease, err := other(name).Lock(ctx, core.WithWait(10*time.Millisecond)); err == nil {
		unlock(t, lease) // a reader beside a reader
	}
	unlock(t, inner)
	unlock(t, outer)
	if err := receive(t, waiting); err != nil {
		t.Errorf("%s: waiter: %v", name, err)
	}
}

// documentedRules reads the rights from docs/redis.md, so that it cannot say less than is needed.
func documentedRules(t *testing.T, sentence string) []string {
	t.Helper()
	return rulesIn(t, "../docs/redis.md", sentence)
}

func rulesIn(t *testing.T, file, sentence string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?s)" + sentence + " (.*?)\\.\n").FindStringSubmatch(string(text))
	if section == nil {
		t.Fatalf("%s lists no rights", file)
	}
	var rules []string
	for word := range strings.FieldsSeq(strings.ReplaceAll(section[1], "`", " ")) {
		if strings.ContainsAny(word[:1], "~&+") {
			rules = append(rules, word)
		}
	}
	return rules
}
