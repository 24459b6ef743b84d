package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// fieldRow matches a row of the table of docs/operations.md that shows the hash of a lock.
var fieldRow = regexp.MustCompile("(?m)^\\| `(Mutex|Fair|Write|Read)` \\| (.*) \\|$")

// TestInspectionFields compares the table of docs/operations.md that shows the hash of a lock with what Redis has while
// the lock is held. Numbers of more than ten digits differ from grant to grant.
func TestInspectionFields(t *testing.T) {
	t.Parallel()
	page, err := markdown.Read(root, "docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := fieldRow.FindAllStringSubmatch(strings.Join(page.Lines, "\n"), -1)
	const compact = 4 // rows of the first table; the second shows the locks after another client has asked for them
	if len(rows) != 2*compact {
		t.Fatalf("found %d rows, expected %d", len(rows), 2*compact)
	}
	server := testkit.Start(t)
	locks := newLocks(t, server.Client())
	strategies := map[string]core.Strategy{
		"Mutex": locks.Mutex, "Fair": locks.Fair, "Write": locks.Write, "Read": locks.Read,
	}
	for i, row := range rows {
		name := fmt.Sprint(row[1], i)
		lease, err := strategies[row[1]](name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i >= compact {
			if _, err := locks.Write(name).TryLock(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		fields, err := server.Client().HGetAll(t.Context(), "lock:"+name).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range fieldPair.FindAllStringSubmatch(row[2], -1) {
			field := strings.ReplaceAll(pair[1], "<owner>", lease.Owner())
			if got, want := longNumber.ReplaceAllString(fields[field], "N"), longNumber.ReplaceAllString(pair[2], "N"); got != want {
				t.Errorf("%s: field %s is %q, the page says %q", row[1], field, got, want)
			}
		}
	}
}

var (
	fieldPair  = regexp.MustCompile("`([^`]+)` `([^`]+)`")
	longNumber = regexp.MustCompile(`\d{11,}`)
)

// TestAllDigests runs the loop of docs/operations.md that prints the digests of the names that are in Redis.
func TestAllDigests(t *testing.T) {
	t.Parallel()
	need(t, "sh", "redis-cli", "sha256sum", "cut")
	server := testkit.Start(t)
	locks := newLocks(t, server.Client())
	for _, name := range []string{"order:42", "{payment}:42", "with a blank"} {
		if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := locks.Once("report").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := shell(t, fmt.Sprintf("alias redis-cli='redis-cli -s %s'", server.Addr()), blockOf(t, "docs/operations.md", "for").Code)
	for _, key := range []string{
		"lock:order:42", "lock:{payment}:42", "lock:with a blank", "holdfast:once:{lock:report}",
	} {
		digest := sha256.Sum256([]byte(key))
		line := hex.EncodeToString(digest[:4]) + " " + key
		if strings.Count(out+"\n", line+"\n") != 1 {
			t.Errorf("the line %q is not printed once:\n%s", line, out)
		}
	}
}

// TestFreedByHand runs the commands of docs/operations.md that free a lock without Go. The second one reaches the client
// that waits.
func TestFreedByHand(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newLocks(t, server.Client())
	if _, err := locks.Mutex("order:42").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiter, granted := newLocks(t, server.Client()), make(chan error, 1)
	go func() {
		_, err := waiter.Mutex("order:42").Lock(t.Context())
		granted <- err
	}()
	for info := (core.Info{}); info.Waiters == 0; {
		var err error
		if info, err = locks.Inspect(t.Context(), "order:42"); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(blockOf(t, "docs/operations.md", "DEL").Code) {
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, word)
		}
		if n, err := server.Client().Do(t.Context(), args...).Int(); n != 1 || err != nil {
			t.Errorf("%q: got %d, %v, expected 1", args, n, err)
		}
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
}
