package inspect_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var listedLocks = flag.Int("listed", 0, "how many locks TestListOfMany lists, to log what that costs the server; by default a few thousand")

// TestListOfMany lists many locks in pages of a hundred, beside as many keys of the application and a lock with 5,000 readers. It
// bounds the commands of each page, and never sends KEYS. With -listed it logs what the server needed: the figures in
// lab/RESULTS.md.
func TestListOfMany(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	const few = 3000
	names := append(coretest.SeedLocks(t, rdb, "name", max(few, *listedLocks)), "name")
	seedOthers(t, rdb, max(few, *listedLocks))
	locks := coretest.NewClient(t, server.Client())
	coretest.MustLock(t, locks.Read("name"), core.WithTTL(time.Hour))
	coretest.Expand(t, locks, "name")
	coretest.ShareOut(t, rdb, 5000, time.Now().Add(time.Hour))
	if *listedLocks > 0 {
		rdb.ConfigSet(ctx, "slowlog-log-slower-than", "0")
		rdb.ConfigSet(ctx, "slowlog-max-len", "1000000")
	}
	rdb.ConfigResetStat(ctx)
	rdb.SlowLogReset(ctx)

	found, pages := make(map[string]int), 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := coretest.LockPage(ctx, locks, "", cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Locks) > 1000 {
			t.Errorf("a page of 100 has %d locks", len(page.Locks))
		}
		for _, e := range page.Locks {
			found[e.Name]++
			if e.Name == "name" && (e.Holds != 5001 || len(e.Holders) != 3 || e.Mode != core.ModeRead) {
				t.Errorf("%+v", e)
			}
		}
		cursor = page.Next
	}
	coretest.WantAll(t, found, names)
	stats := server.CommandStats()
	if scans := stats["scan"].Calls; scans > int64(16*pages) {
		t.Errorf("%d SCANs for %d pages", scans, pages)
	}
	scripts, wanted := stats["evalsha"].Calls+stats["eval"].Calls, int64(0)
	for _, n := range found {
		wanted += int64(n)
	}
	if scripts > 2*wanted || stats["keys"].Calls > 0 { // on a busy machine some are sent twice
		t.Errorf("%d scripts for %d locks, KEYS was sent %d times", scripts, wanted, stats["keys"].Calls)
	}
	if *listedLocks > 0 {
		logServerTime(t, server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }), stats, pages)
	}
}

// seedOthers makes keys that are no locks.
func seedOthers(t testing.TB, rdb *redis.Client, n int) {
	t.Helper()
	ctx := context.Background()
	for done := 0; done < n; {
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range min(5000, n-done) {
				pipe.Set(ctx, fmt.Sprint("session:", done), "data", 0)
				done++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// logServerTime logs what a walk has cost the server: all of it, and the time of single commands. On a busy machine the longest
// are those during which the server had to wait for a processor.
func logServerTime(t *testing.T, rdb *redis.Client, stats map[string]testkit.Stat, pages int) {
	t.Helper()
	all := stats["scan"].Usec + stats["evalsha"].Usec + stats["eval"].Usec + stats["info"].Usec
	t.Logf("%d pages, %d SCANs: %d µs of server time for each page", pages, stats["scan"].Calls, all/int64(pages))
	took := make(map[string][]time.Duration)
	for _, entry := range rdb.SlowLogGet(context.Background(), -1).Val() {
		kind := entry.Args[0]
		if kind != "scan" && len(entry.Args) > 3 && slices.Contains(entry.Args, "lock:name") {
			kind = "script on the lock with 5,000 readers"
		}
		took[kind] = append(took[kind], entry.Duration)
	}
	for _, kind := range []string{"scan", "evalsha", "info", "script on the lock with 5,000 readers"} {
		t.Logf("%s: median %v, 99 of 100 within %v, the longest %v", kind,
			coretest.Quantile(took[kind], 0.5), coretest.Quantile(took[kind], 0.99), coretest.Quantile(took[kind], 1))
	}
}
