package docs_test

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
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
	want := fmt.Sprintf(`(?s)%s\n1\n.*mode\n30000 %d\n.*\d{4,5}\n$`, lease.Owner(), lease.Token())
	if out := shell(t, server, "redis-cli"); !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// TestFields: the table of the fields of a lock has what Redis has: the first mode of a lock that nobody else has asked for, the second
// one after another client has.
func TestFields(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/runbooks.md")
	server := start(t)
	locks := newLocks(t, server.Client())
	fields := func(name string) map[string]string { return server.Client().HGetAll(t.Context(), "lock:"+name).Val() }
	for held, lock := range map[string]*core.Lock{
		"Mutex": locks.Mutex("m"), "Fair": locks.Fair("f"), "Write": locks.Write("w"), "Read": locks.Read("r"),
		"Semaphore(name, 5)": locks.Semaphore("s", 5),
	} {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(held) + "` \\| `([^`]+)`[^|]*\\| `([^`]+)`(?:, and `([^`]+)` is `([^`]+)`)? \\|$").FindStringSubmatch(page)
		if row == nil {
			t.Errorf("no row of %s", held)
			continue
		}
		lease, err := lock.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := fields(lock.Name())
		if first["mode"] != strings.ReplaceAll(row[1], "<token>", strconv.FormatInt(lease.Token(), 10)) || first[lease.Owner()] != "1" || len(first) != 2 {
			t.Errorf("%s: Redis has %q, the page %q", held, first, row[1:])
		}
		if _, err := locks.Write(lock.Name()).TryLock(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
			t.Fatal(err)
		}
		then := fields(lock.Name())
		if then["mode"] != row[2] || then["ttl"] != "30000" {
			t.Errorf("%s: Redis has then %q, the page %q", held, then, row[1:])
		}
		if held == "Read" || row[3] != "" {
			if read := then["read:"+lease.Owner()]; !regexp.MustCompile(`^1 \d{16} \d{16}$`).MatchString(read) {
				t.Errorf("%s: read:<owner> is %q", held, read)
			}
		}
		if row[3] != "" && then[strings.ReplaceAll(row[3], "<owner>", lease.Owner())] != row[4] {
			t.Errorf("%s: Redis has then %q, the page %q", held, then, row[1:])
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
