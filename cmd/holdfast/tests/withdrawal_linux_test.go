package holdfast_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSlowRedisKeepsNoLock: a call gives up while the answer that grants its lock is under way. It withdraws the request when
// Redis answers again soon after, so that the next call gets the lock.
func TestSlowRedisKeepsNoLock(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	run(t, urlOf(srv), "exec", "-n", "n", "--", "true") // loads the scripts
	for try := range 4 {
		relay, name := srv.Relay(), fmt.Sprint("slow", try)
		var once sync.Once
		relay.OnRequest(func(chunk []byte) {
			if bytes.Contains(chunk, []byte(name)) {
				once.Do(func() {
					go relay.Drop(testkit.ToClient)
					time.AfterFunc(300*time.Millisecond, func() { relay.Drop(testkit.Both) })
					time.AfterFunc(2300*time.Millisecond, relay.Heal)
				})
			}
		})
		slow := run(t, "redis://"+relay.Addr(), "exec", "-w", "1", name, "--", "true")
		next := run(t, urlOf(srv), "exec", "-n", name, "--", "true")
		if slow.status == 69 && next.status == 0 {
			return
		}
		t.Logf("%+v, then %+v", slow, next) // a busy machine may have had no time for the withdrawal
	}
	t.Error("each lock stays behind")
}

// TestFailureWithoutData: Redis has lost its data when a run with --retry fails. No other attempt has followed, and the
// status is that of the command.
func TestFailureWithoutData(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	flushed := filepath.Join(t.TempDir(), "flushed")
	p := start(t, command(t, urlOf(srv), "once", "--retry", "k", "-c", "until [ -e "+flushed+" ]; do sleep 0.02; done; exit 3"))
	awaitCommand(t, p.pid)
	if err := srv.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(flushed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status := awaitEnd(t, p); status != 3 {
		t.Errorf("status %d", status)
	}
}
