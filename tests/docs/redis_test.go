package docs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// blockOf returns the block of a page whose first line begins with that word.
func blockOf(t *testing.T, path, word string) markdown.Block {
	t.Helper()
	page, err := markdown.Read(root, path)
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := page.Split()
	for _, b := range blocks {
		if strings.HasPrefix(b.Code, word+" ") {
			return b
		}
	}
	t.Fatalf("%s has no block that begins with %s", path, word)
	return markdown.Block{}
}

// shell runs a line of a block with sh, after a prelude, and returns its output without the newline at its end.
func shell(t *testing.T, prelude, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", prelude+"\n"+line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// need skips the test if one of the programs is not installed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}

// newLocks returns a client that lives until the test ends.
func newLocks(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// TestInspectionCommands runs the commands of docs/operations.md that show a lock, while a client holds the lock.
func TestInspectionCommands(t *testing.T) {
	t.Parallel()
	need(t, "sh", "redis-cli")
	server := testkit.Start(t)
	lease, err := newLocks(t, server.Client()).Mutex("order:42").Lock(t.Context(), core.WithTTL(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	prelude := fmt.Sprintf("alias redis-cli='redis-cli -s %s'", server.Addr())
	ran := 0
	for line := range strings.Lines(blockOf(t, "docs/operations.md", "redis-cli").Code) {
		out := shell(t, prelude, line)
		switch c := parseShell(line)[0]; c.args[1] {
		case "HGETALL":
			compareFields(t, c.note, out, lease)
		case "PTTL":
			if ms, err := strconv.Atoi(out); err != nil || ms <= 0 || ms > 60_000 {
				t.Errorf("%s: %q, expected milliseconds up to a minute", c, out)
			}
		default:
			t.Errorf("no test knows what %s must print", c)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("ran %d commands, expected 2", ran)
	}
}

// compareFields compares the hash of a lock with the fields that the comment of the page lists, and with the lease.
func compareFields(t *testing.T, note, out string, lease *core.Lease) {
	t.Helper()
	fields := make(map[string]string)
	lines := strings.Split(out, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		fields[lines[i]] = lines[i+1]
	}
	for _, name := range strings.Split(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(note, ""), ", ") {
		if name == "owner" {
			name = lease.Owner()
		}
		if fields[name] == "" {
			t.Errorf("the lock has no field %q, which the page lists: %q", name, out)
		}
	}
	if fields["token"] != strconv.FormatInt(lease.Token(), 10) {
		t.Errorf("token %q, expected %d", fields["token"], lease.Token())
	}
	granted, err := strconv.ParseInt(fields["token"], 10, 64)
	if since := time.Since(time.UnixMicro(granted)); err != nil || since < 0 || since > time.Hour {
		t.Errorf("token %q is not a time in microseconds: %v", fields["token"], err)
	}
}

// shortTTL is that of a lease whose loss a test waits for, a third of it. A busy machine grants within that time.
const shortTTL = 6 * time.Second

// TestDigestCommands runs the commands of docs/operations.md that compute a digest, and compares their output with the
// log of a lost lease.
func TestDigestCommands(t *testing.T) {
	t.Parallel()
	need(t, "sh", "sha256sum", "cut")
	server := testkit.Start(t)
	logged := make(digests, 100)
	locks := newLocks(t, server.Client(), core.WithLogger(slog.New(logged)))
	var printed []string
	for line := range strings.Lines(blockOf(t, "docs/operations.md", "printf").Code) {
		printed = append(printed, shell(t, "", line))
	}
	if len(printed) != 2 {
		t.Fatalf("ran %d commands, expected 2", len(printed))
	}
	lease, err := locks.Mutex("order:42").Lock(t.Context(), core.WithTTL(shortTTL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.ForceUnlock(t.Context(), "order:42"); err != nil {
		t.Fatal(err)
	}
	<-lease.Context().Done()
	logged.expect(t, printed[0])
	logged.expectLost(t, locks, "payment:42", printed[1])
	const braces = "holdfast:once=lock:{payment}:42"
	if page, err := markdown.Read(root, "docs/operations.md"); err != nil ||
		!strings.Contains(strings.Join(page.Lines, "\n"), "`"+braces+"`") {
		t.Fatalf("docs/operations.md does not have %s: %v", braces, err)
	}
	logged.expectLost(t, locks, "{payment}:42", shell(t, "", "printf %s '"+braces+"' | sha256sum | cut -c1-8"))
}

// digests receives the digest of each lock whose lease is logged as lost.
type digests chan string

func (digests) Enabled(context.Context, slog.Level) bool { return true }
func (d digests) WithAttrs([]slog.Attr) slog.Handler     { return d }
func (d digests) WithGroup(string) slog.Handler          { return d }

func (d digests) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "holdfast: lease lost" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "lock" {
				d <- a.Value.String()
			}
			return true
		})
	}
	return nil
}

// expect waits for the next lost lease, and compares its digest.
func (d digests) expect(t *testing.T, printed string) {
	t.Helper()
	select {
	case logged := <-d:
		if logged != printed {
			t.Errorf("the log has the digest %q, the command of the page prints %q", logged, printed)
		}
	case <-time.After(time.Minute):
		t.Error("no lost lease was logged")
	}
}

// expectLost lets an attempt of Once lose its lease, and compares the digest.
func (d digests) expectLost(t *testing.T, locks *core.Client, key, printed string) {
	t.Helper()
	once := locks.Once(key, core.WithTTL(shortTTL))
	attempt, err := once.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := once.Peek(t.Context())
	if err == nil {
		err = once.ForgetRunning(t.Context(), seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-attempt.Context().Done()
	d.expect(t, printed)
}

// TestACLCommand runs the commands of docs/redis.md that make a user, the one for redis-cli and the one for a shell. The
// user has the rights that the page lists before them, which the tests of core use, and can lock.
func TestACLCommand(t *testing.T) {
	t.Parallel()
	need(t, "sh", "redis-cli")
	server := testkit.Start(t)
	admin := server.Client()
	run := func(words []string) {
		args := make([]any, len(words))
		for i, word := range words {
			args[i] = word
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%q: %v", words, err)
		}
	}
	words := strings.Fields(blockOf(t, "docs/redis.md", "ACL").Code)
	run(words)
	page, err := markdown.Read(root, "docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile("(?s)A Redis user needs (.*?)\\.\n").FindStringSubmatch(strings.Join(page.Lines, "\n"))
	if listed == nil {
		t.Fatal("docs/redis.md does not list the rights")
	}
	rights := strings.Fields(strings.NewReplacer("`", " ", " and\n", " ").Replace(listed[1]))
	run(append(strings.Fields("ACL SETUSER listed on >listed"), rights...))
	if one, other := rightsOf(t, admin, "locks"), rightsOf(t, admin, "listed"); one != other {
		t.Errorf("the command gives %s\nthe list gives %s", one, other)
	}
	run(strings.Fields("ACL DELUSER locks"))
	shell(t, fmt.Sprintf("alias redis-cli='redis-cli -s %s'", server.Addr()), blockOf(t, "docs/redis.md", "redis-cli").Code)
	if one, other := rightsOf(t, admin, "locks"), rightsOf(t, admin, "listed"); one != other {
		t.Errorf("the command for a shell gives %s\nthe list gives %s", one, other)
	}
	user := server.Client(func(o *redis.Options) {
		o.Username, o.Password = words[2], strings.TrimPrefix(words[4], ">")
	})
	lease, err := newLocks(t, user).Mutex("order:42").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// rightsOf returns the rights of a user as the server tells them, sorted.
func rightsOf(t *testing.T, admin *redis.Client, name string) string {
	t.Helper()
	users, err := admin.Do(t.Context(), "ACL", "LIST").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if rest, ok := strings.CutPrefix(u, "user "+name+" "); ok {
			rules := slices.DeleteFunc(strings.Fields(rest), func(rule string) bool { return rule[0] == '#' }) // the password
			slices.Sort(rules)
			return strings.Join(rules, " ")
		}
	}
	t.Fatalf("no user %s in %q", name, users)
	return ""
}
