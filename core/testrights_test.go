package core_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// setUser makes the user "locker" with these rights alone.
func setUser(t testing.TB, s *testkit.Server, rules []string) {
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

func nothingDenied(t *testing.T, server *testkit.Server) {
	t.Helper()
	for _, what := range server.Denied() {
		t.Errorf("Redis denied %s", what)
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

// restricted returns a connection as a user with all keys and channels and the given command rules.
func restricted(t testing.TB, server *testkit.Server, rules ...string) *redis.Client {
	t.Helper()
	ctx := context.Background()
	args := []any{"ACL", "SETUSER", t.Name(), "reset", "on", "nopass", "~*", "&*"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := server.Client().Do(ctx, args...).Err(); err != nil {
		t.Fatalf("ACL SETUSER: %v", err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password = t.Name(), "any" })
}

// setRight gives the user of [restricted] a right, or takes one away.
func setRight(t testing.TB, server *testkit.Server, rule string) {
	t.Helper()
	if err := server.Client().Do(context.Background(), "ACL", "SETUSER", t.Name(), rule).Err(); err != nil {
		t.Fatal(err)
	}
}
