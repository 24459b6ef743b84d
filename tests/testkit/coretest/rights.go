package coretest

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// SetUser makes the user "locker" with these rights alone.
func SetUser(t testing.TB, s *testkit.Server, rules []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "locker", "reset", "on", ">secret", "resetchannels"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := s.Client().Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func NothingDenied(t *testing.T, server *testkit.Server) {
	t.Helper()
	for _, what := range server.Denied() {
		t.Errorf("Redis denied %s", what)
	}
}

// DocumentedRules reads the rights from docs/keys-and-rights.md, so that it cannot say less than is needed.
func DocumentedRules(t *testing.T, sentence string) []string {
	t.Helper()
	return RulesIn(t, "../../docs/keys-and-rights.md", sentence)
}

func RulesIn(t *testing.T, file, sentence string) []string {
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

// Restricted returns a connection as a user with all keys and channels and the given command rules.
func Restricted(t testing.TB, server *testkit.Server, rules ...string) *redis.Client {
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

// SetRight gives the user of [restricted] a right, or takes one away.
func SetRight(t testing.TB, server *testkit.Server, rule string) {
	t.Helper()
	if err := server.Client().Do(context.Background(), "ACL", "SETUSER", t.Name(), rule).Err(); err != nil {
		t.Fatal(err)
	}
}
