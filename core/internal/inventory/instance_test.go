package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// testClock is a clock that moves only when it is told to.
type testClock struct{ now atomic.Int64 }

func (c *testClock) Now() keepalive.Instant  { return keepalive.Instant(c.now.Load()) }
func (c *testClock) pass(time time.Duration) { c.now.Add(int64(time)) }

// executor returns an executor on rdb, closed with the test.
func executor(t *testing.T, rdb redis.UniversalClient) *transport.Executor {
	t.Helper()
	stop := make(chan struct{})
	exec := transport.NewExecutor(rdb, transport.Background{Now: keepalive.SystemClock}, stop)
	t.Cleanup(func() {
		exec.Nodes.Close(time.Second)
		close(stop)
	})
	return exec
}

// client returns the UUID of the n-th client.
func client(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// TestAnnouncerWritesAgain: an interval after the last write, if the client has leases or waiters then, and for a longer TTL.
// The interval doubles, and the text is kept for two of them.
func TestAnnouncerWritesAgain(t *testing.T) {
	t.Parallel()
	rdb, now := testkit.Start(t).Client(), new(testClock)
	a := NewAnnouncer(client(1), "web-1", now.Now, func(err error) { t.Error(err) })
	a.AddServer(executor(t, rdb))
	key := script.ClientKey(client(1))
	// rewritten deletes the key and returns true if a Touch has brought it back with that expiry.
	rewritten := func(ttl, expiry time.Duration) {
		t.Helper()
		rdb.Del(t.Context(), key)
		a.Touch(now.Now(), ttl)
		testkit.Eventually(t, 20*time.Second, "the text to be written", func() bool {
			left := rdb.PTTL(context.Background(), key).Val()
			return left > expiry-time.Minute && left <= expiry
		})
	}
	// kept checks that a Touch writes nothing. What it had sent would come before the text of the next rewritten.
	kept := func(ttl time.Duration) {
		t.Helper()
		a.Touch(now.Now(), ttl)
		if due := a.due.Load(); due <= now.now.Load() {
			t.Errorf("due %v before now", time.Duration(now.now.Load()-due))
		}
	}
	rewritten(time.Minute, 3*time.Minute)
	for doubled := range 8 {
		interval := min(time.Minute<<doubled, longestInterval)
		kept(time.Second)
		now.pass(interval - time.Second)
		kept(time.Minute)
		now.pass(time.Second)
		rewritten(time.Second, 2*min(2*interval, longestInterval)+time.Minute) // a lease of a minute may still be held
	}
	rewritten(5*time.Hour, 2*longestInterval+5*time.Hour)
	a.Leave()
	if left := rdb.PTTL(t.Context(), key).Val(); left > 5*time.Hour {
		t.Errorf("kept for %v after Leave, longer than the longest lease", left)
	}
	rdb.Del(t.Context(), key)
	now.pass(2 * longestInterval)
	a.Touch(now.Now(), 10*time.Hour)
	if a.covered.Load() != int64(5*time.Hour) {
		t.Error("written after Leave")
	}
}

// TestAnnouncerRetries: a minute after a failed write, at the next lease, and tells of each.
func TestAnnouncerRetries(t *testing.T) {
	t.Parallel()
	server, now := testkit.Start(t), new(testClock)
	rdb := server.Client()
	failures := make(chan error, 10)
	a := NewAnnouncer(client(1), "web-1", now.Now, func(err error) { failures <- err })
	a.AddServer(executor(t, rdb))
	rdb.ConfigSet(t.Context(), "maxmemory", "1")
	a.Touch(now.Now(), time.Minute)
	if err := <-failures; !strings.Contains(err.Error(), "OOM") {
		t.Errorf("failed with %v", err)
	}
	rdb.ConfigSet(t.Context(), "maxmemory", "0")
	now.pass(retryInterval)
	a.Touch(now.Now(), time.Minute)
	testkit.Eventually(t, 20*time.Second, "the text to be written", func() bool {
		return rdb.Get(context.Background(), script.ClientKey(client(1))).Val() == "web-1"
	})
}

// TestDirectoryAsksSeldom: once for a client that is found, and each missingInterval for one that is not.
func TestDirectoryAsksSeldom(t *testing.T) {
	t.Parallel()
	rdb, now := testkit.Start(t).Client(), new(testClock)
	d := NewDirectory(client(0), "me", now.Now)
	d.AddServer(executor(t, rdb))
	if text := d.Instance(client(0) + ":1"); text != "me" {
		t.Errorf("itself: %q", text)
	}
	owner := client(1) + ":7"
	d.Find(t.Context(), slices.Values([]string{owner, owner, "Ada"})) // it has no text yet
	rdb.Set(t.Context(), script.ClientKey(client(1)), "web-1", time.Hour)
	if d.Find(t.Context(), slices.Values([]string{owner})); d.Instance(owner) != "" {
		t.Error("asked again at once")
	}
	now.pass(missingInterval)
	if d.Find(t.Context(), slices.Values([]string{owner})); d.Instance(owner) != "web-1" {
		t.Errorf("found %q", d.Instance(owner))
	}
	rdb.Set(t.Context(), script.ClientKey(client(1)), "other", time.Hour)
	now.pass(time.Hour)
	if d.Find(t.Context(), slices.Values([]string{owner})); d.Instance(owner) != "web-1" {
		t.Error("asked for a client that is known")
	}
	rdb.Set(t.Context(), script.ClientKey(client(2)), "forged\nline", time.Hour)
	if d.Find(t.Context(), slices.Values([]string{client(2) + ":1"})); d.Instance(client(2)+":1") != "" {
		t.Error("took a text that would break the log")
	}
}

// TestForeignTexts: what another program writes to the key of a client is not known, and a reply is short however long that is.
func TestForeignTexts(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	exec := executor(t, rdb)
	key := script.ClientKey(client(1))
	for what, write := range map[string]func(){
		"a megabyte":   func() { rdb.Set(t.Context(), key, strings.Repeat("x", 1<<20), time.Hour) },
		"an escape":    func() { rdb.Set(t.Context(), key, "\x1b[2J", time.Hour) },
		"a hash":       func() { rdb.Del(t.Context(), key); rdb.HSet(t.Context(), key, "web", "1") },
		"an empty one": func() { rdb.Del(t.Context(), key); rdb.Set(t.Context(), key, "", time.Hour) },
	} {
		write()
		d := NewDirectory(client(0), "me", new(testClock).Now)
		d.AddServer(exec)
		if d.Find(t.Context(), slices.Values([]string{client(1) + ":7"})); d.Instance(client(1)+":7") != "" {
			t.Errorf("%s is taken for an instance", what)
		}
		if reply, _ := exec.Do(t.Context(), findScript, []string{key}); reply != nil && len(reply.(string)) > maxInstance+1 {
			t.Errorf("%s: a reply of %d bytes", what, len(reply.(string)))
		}
	}
}

// TestDirectoryIsBounded: however many clients there are, and it never forgets itself.
func TestDirectoryIsBounded(t *testing.T) {
	t.Parallel()
	d := NewDirectory(client(0), "me", new(testClock).Now)
	for n := range 3 * maxKnown {
		d.Instance(client(n) + ":1")
	}
	if n := len(d.known); n != maxKnown || d.Instance(client(0)+":1") != "me" {
		t.Errorf("knows %d clients, itself as %q", n, d.Instance(client(0)+":1"))
	}
}

// TestDefaultText: it has the host and the process, and is one that may be written.
func TestDefaultText(t *testing.T) {
	t.Parallel()
	if text := DefaultInstance(); CheckInstance(text) != nil || !strings.Contains(text, ":") {
		t.Errorf("%q: %v", text, CheckInstance(text))
	}
}

// TestDirectoryAsksLessOften: for a client without a text the interval doubles, up to a bound.
func TestDirectoryAsksLessOften(t *testing.T) {
	t.Parallel()
	now := new(testClock)
	d := NewDirectory(client(0), "me", now.Now)
	var asked []int
	for second := range 64 {
		if _, ask := d.lookUp(client(1)); ask {
			asked = append(asked, second)
		}
		now.pass(time.Second)
	}
	if want := []int{0, 1, 3, 7, 15, 31, 47, 63}; !slices.Equal(asked, want) {
		t.Errorf("asked at %v, want %v", asked, want)
	}
}

// TestShortText: what a record says of a client has 64 bytes at most, with the process ID at its end.
func TestShortText(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", 64)
	if text := ShortInstance(longest); text != longest {
		t.Errorf("64 bytes became %q", text)
	}
	text := ShortInstance("checkout-" + strings.Repeat("x", 110) + "-x2x4z:4711")
	if len(text) != 64 || !strings.HasPrefix(text, "checkout-xxx") || !strings.HasSuffix(text, "xxx-x2x4z:4711") || !strings.Contains(text, "...") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
