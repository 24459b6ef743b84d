package docs_test

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// shell runs the block of docs/runbooks.md that begins with a word. In it, redis-cli asks that server.
func shell(t *testing.T, server *testkit.Server, word string) string {
	t.Helper()
	for _, name := range []string{"sh", "redis-cli", "sha256sum"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	script := fmt.Sprintf("alias redis-cli='redis-cli -s %s'\n%s", server.Addr(), blockOf(t, "docs/runbooks.md", word))
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestInspection: redis-cli shows a lock, its owner and its TTL.
func TestInspection(t *testing.T) {
	t.Parallel()
	server := start(t)
	lease := mustLock(t, newLocks(t, server.Client()).Mutex("order:42"))
	want := fmt.Sprintf(`(?s)%s\n1\n.*token\n%d\n.*\d{4,5}\n$`, lease.Owner(), lease.Token())
	if out := shell(t, server, "redis-cli"); !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// TestFields: the tables of the fields of a lock have what Redis has: the first one of a lock that nobody else has asked for, the
// second one after another client has. Numbers of more than ten digits differ from grant to grant.
func TestFields(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile("(?m)^\\| `(Mutex|Fair|Write|Read)` \\| (.*) \\|$").FindAllStringSubmatch(readFile(t, "docs/runbooks.md"), -1)
	if len(rows) != 8 {
		t.Fatalf("found %d rows, want 8", len(rows))
	}
	server := start(t)
	locks := newLocks(t, server.Client())
	strategies := map[string]core.Strategy{"Mutex": locks.Mutex, "Fair": locks.Fair, "Write": locks.Write, "Read": locks.Read}
	number := regexp.MustCompile(`\d{11,}`)
	for i, row := range rows {
		name := fmt.Sprint(row[1], i)
		lease := mustLock(t, strategies[row[1]](name))
		if i >= 4 {
			if _, err := locks.Write(name).TryLock(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		fields := server.Client().HGetAll(t.Context(), "lock:"+name).Val()
		for _, pair := range regexp.MustCompile("`([^`]+)` `([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			field := strings.ReplaceAll(pair[1], "<owner>", lease.Owner())
			if got, want := number.ReplaceAllString(fields[field], "N"), number.ReplaceAllString(pair[2], "N"); got != want {
				t.Errorf("%s: field %s is %q, the page has %q", row[1], field, got, want)
			}
		}
	}
}

// TestDigests: the commands print the digests of the log, of one name and of all that is in Redis.
func TestDigests(t *testing.T) {
	t.Parallel()
	server := start(t)
	locks := newLocks(t, server.Client())
	want := seal.NamesOf(locks).Digest("order:42", false) + "\n" + seal.NamesOf(locks).Digest("payment:42", true) + "\n"
	if out := shell(t, server, "printf"); out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	mustLock(t, locks.Mutex("order:42"))
	mustLock(t, locks.Mutex("with a blank"))
	if _, err := locks.Once("{payment}:42").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := shell(t, server, "for pattern")
	for _, line := range []string{
		seal.NamesOf(locks).Digest("order:42", false) + " lock:order:42\n",
		seal.NamesOf(locks).Digest("with a blank", false) + " lock:with a blank\n",
		seal.NamesOf(locks).Digest("{payment}:42", true) + " holdfast:once=lock:{payment}:42\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}

// TestFreedByHand: the commands free a lock without Go, and wake who waits for it.
func TestFreedByHand(t *testing.T) {
	t.Parallel()
	server := start(t)
	rdb := server.Client()
	locks, waiter := newLocks(t, rdb), newLocks(t, server.Client())
	mustLock(t, locks.Mutex("order:42"))
	granted := make(chan error, 1)
	go func() {
		_, err := waiter.Mutex("order:42").Lock(t.Context())
		granted <- err
	}()
	for info := (core.Info{}); info.Waiters == 0; {
		info, _ = locks.Inspect(t.Context(), "order:42")
	}
	for line := range strings.Lines(blockOf(t, "docs/runbooks.md", "DEL")) {
		var args []any
		for word := range strings.FieldsSeq(line) {
			args = append(args, word)
		}
		if n, err := rdb.Do(t.Context(), args...).Int(); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", line, n, err)
		}
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
}
