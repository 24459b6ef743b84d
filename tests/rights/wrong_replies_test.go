package rights_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// repliesOf returns a reply of Redis as it is on the wire.
func repliesOf(reply string) string { return strings.ReplaceAll(reply, " ", "\r\n") + "\r\n" }

// TestForeignServerSlots: a server that replies a slot that the semaphore does not have, or a slot of a lock that has none, gives no
// lock.
func TestForeignServerSlots(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"*3 :1 :5 :2", "*3 :1 :5 :999999", "*3 :1 :5 :1000000", "*3 :1 :5 :-1", "*3 :1 :5 :0", "*3 :1 :5 $1 1"} {
		locks := coretest.NewClient(t, foreignServer(t, repliesOf(reply)), core.WithTTL(time.Second))
		for kind, strategy := range map[string]core.Strategy{"semaphore": locks.Limit(2), "fair": locks.Fair, "read": locks.Read, "write": locks.Write} {
			if lease, err := strategy(kind).TryLock(context.Background()); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("%s: %s: slot %d, error %v", reply, kind, lease.Slot(), err)
			}
		}
	}
	locks := coretest.NewClient(t, foreignServer(t, repliesOf("*3 :1 :5 :1")), core.WithTTL(time.Second))
	if lease, err := locks.Limit(2)("semaphore").TryLock(context.Background()); err != nil || lease.Slot() != 1 {
		t.Errorf("slot %d, error %v", lease.Slot(), err)
	}
}

// TestForgedSlot: a message of another program grants no slot that the semaphore does not have, and none of a lock that has none.
func TestForgedSlot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range map[string]core.Strategy{"fair": locks.Fair, "semaphore": locks.Limit(1)} {
		held := coretest.MustLock(t, strategy(kind))
		waiting := coretest.LeaseLater(t, strategy(kind))
		coretest.AwaitQueue(t, locks, kind, 1)
		waiters := rdb.HKeys(ctx, "holdfast:waiters:{lock:"+kind+"}").Val()
		if len(waiters) != 1 {
			t.Fatalf("%d waiters", len(waiters))
		}
		client, _, _ := strings.Cut(waiters[0], ":")
		message := fmt.Sprint(waiters[0], " ", held.Token()+1, " 1")
		if err := rdb.Publish(ctx, "redisson_lock__channel:{lock:"+kind+"}:"+client, message).Err(); err != nil {
			t.Fatal(err)
		}
		// The waiter receives the message before the release's, on the same connection.
		coretest.Unlock(t, held)
		lease := coretest.AwaitLease(t, waiting)
		if lease.Slot() != 0 {
			t.Errorf("%s: slot %d", kind, lease.Slot())
		}
		coretest.Unlock(t, lease)
	}
}

// TestForeignServerRecords: a server that replies no list of records to a request for the records of a group gives an error, and not
// an empty list.
func TestForeignServerRecords(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		":1", ":0", "*0", "*1 $1 1", "*1 :-1", "*1 :99999999", "*2 :0 $1 x", "*2 :1 :1", "*3 :1 $1 x $1 y", "*2 :1 $-1", "*2 :1 *0", "$1 x",
	} {
		locks := coretest.NewClient(t, foreignServer(t, repliesOf(reply)), core.WithTTL(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		records, err := locks.GroupRecords(ctx, "{group}key")
		cancel()
		if err == nil || !strings.Contains(err.Error(), "unexpected reply") {
			t.Errorf("%s: %d records, error %v", reply, len(records), err)
		}
	}
}

// TestEndlessGroup: a server that always replies one more full page of a group gives an error in the end, whatever the context.
func TestEndlessGroup(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, foreignServer(t, repliesOf("*1 :1000")))
	records, err := locks.GroupRecords(context.Background(), "{group}key")
	if err == nil || !strings.Contains(err.Error(), "more than 1000000 members") {
		t.Errorf("%d records, error %v", len(records), err)
	}
}

// TestEndlessShares: a server that always has further shares of an owner gives an error in the end, whatever the context. So does one
// that replies a rank that no script does.
func TestEndlessShares(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"*2 :0 :1": "unexpected reply", "*2 :5 :1001": "unexpected reply", "*2 :1 :1001": "unexpected reply",
		"*2 :1 :0": "do not come to an end", "*2 :1000 :0": "do not come to an end",
	} {
		locks := coretest.NewClient(t, foreignServer(t, repliesOf(reply)))
		_, err := locks.ForceUnlockHolder(context.Background(), "name", core.Holder{Owner: "o"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reply, err)
		}
	}
}

// TestImpossibleTimes: whatever times and numbers another program has written to a lock or a record, what is read of
// them has a form as JSON, which times after the year 9999 have not.
func TestImpossibleTimes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for i, number := range []string{"9223372036854775807", "9007194959773697", "-9223372036854775808"} {
		for kind, strategy := range map[string]core.Strategy{"mutex": locks.Mutex, "fair": locks.Fair, "read": locks.Read, "semaphore": locks.Limit(2)} {
			name := fmt.Sprint(kind, i)
			lease := coretest.MustLock(t, strategy(name))
			_ = coretest.MustLock(t, strategy(name), core.WithOwner(lease.Owner())) // in the state with all fields
			fields := []any{"granted", number, "read:" + lease.Owner(), "1 5 " + number}
			if err := rdb.HSet(ctx, "lock:"+name, fields...).Err(); err != nil {
				t.Fatal(err)
			}
			info, err := locks.Inspect(ctx, name)
			if _, bad := json.Marshal(info); err != nil || bad != nil {
				t.Errorf("%s of %s: %v, %v", kind, number, err, bad)
			}
		}
		key := fmt.Sprint("record", i)
		if err := rdb.HSet(ctx, coretest.RecordOf(key), "state", "completed", "token", "5", "began", number, "ended", number).Err(); err != nil {
			t.Fatal(err)
		}
		record := coretest.MustPeek(t, locks.Once(key))
		if _, err := json.Marshal(record); err != nil {
			t.Errorf("record of %s: %v", number, err)
		}
	}
}

// walks are the lists that scan a server, by name. They are called one after the other, and each has its last error.
func walks(ctx context.Context, locks *core.Client) map[string]error {
	errs := make(map[string]error)
	for _, err := range locks.Locks(ctx, "") {
		errs["Locks"] = err
	}
	for _, err := range locks.Records(ctx, "") {
		errs["Records"] = err
	}
	for _, err := range seal.NamesOf(locks).FindDigest(ctx, "0a1b2c3d") {
		errs["FindDigest"] = err
	}
	return errs
}

// TestEndlessScan: a server whose SCAN never comes to an end keeps a list busy until the context of its caller ends,
// which is an error.
func TestEndlessScan(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, foreignServer(t, repliesOf("*2 $1 5 *0")))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	for walk, err := range walks(ctx, locks) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", walk, err)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestForeignScan: a reply to SCAN that Redis does not make is an error, and no empty list.
func TestForeignScan(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		":0", "*0", "*1 $1 0", "*2 :0 *0", "*2 $-1 *0", "*2 $0  *0", "*2 $1 x *0", "*2 $2 -1 *0", "*2 $20 99999999999999999999 *0", "*2 $1 0 $1 k", "*2 $1 0 *1 :1",
		"*2 $1 0 *1 $-1", "*3 $1 0 *0 *0",
	} {
		locks := coretest.NewClient(t, foreignServer(t, repliesOf(reply)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		errs := walks(ctx, locks)
		cancel()
		for _, walk := range []string{"Locks", "Records", "FindDigest"} {
			if err := errs[walk]; err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("%s: %s: %v", reply, walk, err)
			}
		}
	}
}

// TestLargeScan: a server replies to SCAN with many more keys than it was asked for. A list does not begin as many
// reads at once, and it ends with its context.
func TestLargeScan(t *testing.T) {
	t.Parallel()
	const keys = 100_000
	var reply strings.Builder
	fmt.Fprintf(&reply, "*2\r\n$1\r\n0\r\n*%d\r\n", keys)
	for i := range keys {
		key := fmt.Sprint("lock:", i)
		fmt.Fprintf(&reply, "$%d\r\n%s\r\n", len(key), key)
	}
	rdb := scanServer(t, reply.String()) // no script is answered
	locks := coretest.NewClient(t, rdb)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	before, most := runtime.NumGoroutine(), 0
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := range locks.Locks(ctx, "") {
			failed = err
		}
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-look.C:
			most = max(most, runtime.NumGoroutine())
		}
	}
	if !errors.Is(failed, context.DeadlineExceeded) {
		t.Errorf("Locks: %v", failed)
	}
	if most > before+keys/4 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
}
