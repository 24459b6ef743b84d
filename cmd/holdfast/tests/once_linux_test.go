package holdfast_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestOnceRunsOnce: a second call runs nothing, whatever the exit status of the first.
func TestOnceRunsOnce(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	run(t, url, "once", "a", "-c", "echo ran; exit 3").want(t, 3, "ran", "")
	if again := run(t, url, "once", "a", "--", "echo", "ran"); again != (result{}) {
		t.Errorf("the second call: %+v", again)
	}
	run(t, url, "once", "b", "--retry", "-c", "echo ran; exit 3").want(t, 3, "ran", "")
	run(t, url, "once", "b", "--retry", "-c", "echo ran again").want(t, 0, "ran again", "")
	if again := run(t, url, "once", "b", "--retry", "--", "echo", "ran"); again != (result{}) {
		t.Errorf("a call after a success: %+v", again)
	}
	run(t, url, "once", "c", "--", "no-such-command").want(t, 127, "", "not found")
	run(t, url, "once", "c", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestOnceReplays: the second call prints what the first has printed, and has its status.
func TestOnceReplays(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	first := run(t, url, "once", "a", "--replay", "-c", `echo "out $HOLDFAST_TOKEN"; echo err >&2; exit 3`)
	first.want(t, 3, "out ", "err\n")
	if again := run(t, url, "once", "a", "--replay", "--", "echo", "ran"); again != first {
		t.Errorf("%+v, want %+v", again, first)
	}
	long := run(t, url, "once", "b", "--replay", "--max-output", "10", "--", "seq", "100")
	if long.status != 0 || !strings.HasSuffix(long.stdout, "99\n100\n") {
		t.Errorf("the first call prints %q", long.stdout)
	}
	run(t, url, "once", "b", "--replay", "--", "seq", "100").want(t, 0, "1\n2\n3\n4\n5\n", "more output")
	run(t, url, "once", "c", "--", "true").want(t, 0, "", "")
	run(t, url, "once", "c", "--replay", "--", "true").want(t, 0, "", "")
}

// TestOnceInProgress: while a run is in progress no other begins. A run that was killed leaves an unknown outcome.
func TestOnceInProgress(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	cmd := start(t, command(t, urlOf(srv), "once", "--ttl", "3s", "a", "--", "sleep", "60"))
	p := awaitCommand(t, cmd.Process.Pid)
	run(t, urlOf(srv), "once", "a", "--", "echo", "ran").want(t, 75, "", "in progress")
	if got := run(t, urlOf(srv), "once", "-E", "0", "a", "--", "echo", "ran"); got != (result{}) {
		t.Errorf("a conflict that is expected: %+v", got)
	}
	run(t, urlOf(srv), "once", "-E", "5", "-w", "2", "a", "--", "echo", "ran").want(t, 5, "", "in progress")
	send(syscall.SIGKILL, p.supervisor)
	if status := awaitEnd(t, cmd); status != 79 {
		t.Errorf("status %d", status)
	}
	testkit.Eventually(t, within, "the lease to expire", func() bool {
		record, err := locks.Once("a").Peek(t.Context())
		return err == nil && record.State == core.StateUnknown
	})
	run(t, urlOf(srv), "once", "a", "--", "echo", "ran").want(t, 79, "", "holdfast resolve")
}

// TestOnceWaits: a call that waits gets the outcome of the run in progress.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	cmd := start(t, command(t, url, "once", "--replay", "a", "-c", "sleep 3; echo ran; exit 4")) // long enough to be seen
	awaitCommand(t, cmd.Process.Pid)
	run(t, url, "once", "-w", "30", "--replay", "a", "--", "echo", "other").want(t, 4, "ran", "")
	if status := awaitEnd(t, cmd); status != 4 {
		t.Errorf("status %d", status)
	}
}

// TestOnceTick: of the crons of all hosts, one runs each tick, and the others say nothing.
func TestOnceTick(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	var all sync.WaitGroup
	results := make([]result, 6)
	for i := range results {
		all.Go(func() {
			results[i] = run(t, urlOf(srv), "once", "backup", "--tick", []string{"1000h", "3600000"}[i%2], "--", "echo", "ran")
		})
	}
	all.Wait()
	ran := 0
	for _, r := range results {
		if r.status != 0 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
		ran += strings.Count(r.stdout, "ran")
	}
	if ran != 1 {
		t.Errorf("%d hosts ran the tick", ran)
	}
	for schedule, says := range map[string]string{
		"61 * * * *": "--tick", "0 0 30 2 *": "no day of the coming years", "": "--tick", "9999999h": "too long",
	} {
		run(t, urlOf(srv), "once", "backup", "--tick", schedule, "--", "echo", "ran").want(t, 64, "", says)
	}
}

// TestOnceTickZone: a cron line is in the zone of the host, unless it names one. The record says in which. A zone that does not
// exist is refused.
func TestOnceTickZone(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	call := func(key, line string, variables ...string) result {
		return finish(t, with(command(t, url, "once", key, "--tick", line, "--", "echo", "ran"), variables...))
	}
	for _, wrong := range []string{"Europe/Berln", ":Nowhere", "CET-1CEST,M3.5.0,M10.5.0/3", "/no/such/file"} {
		if got := call("a", "0 4 * * *", "TZ="+wrong); got.stdout != "" {
			t.Errorf("TZ=%s: printed %q", wrong, got.stdout)
		} else {
			got.want(t, 64, "", "this host has no such time zone")
		}
		call("b"+wrong, "CRON_TZ=Asia/Tokyo 0 4 * * *", "TZ="+wrong).want(t, 0, "ran\n", "") // the line has its own
		call("c"+wrong, "24h", "TZ="+wrong).want(t, 0, "ran\n", "")
	}
	for zone, note := range map[string]string{
		"Asia/Tokyo": "zone Asia/Tokyo, JST, +09:00", ":Asia/Tokyo": "zone Asia/Tokyo, JST, +09:00", "UTC": "zone UTC, UTC, +00:00", "": "zone UTC, UTC, +00:00",
	} {
		call("tick of "+zone, "0 4 * * *", "TZ="+zone).want(t, 0, "ran\n", "")
		run(t, url, "records", "--json", "tick of "+zone+"@").want(t, 0, `"note":"`+note+`"`, "")
	}
	call("same", "CRON_TZ=Asia/Tokyo 0 4 * * *", "TZ=UTC").want(t, 0, "ran\n", "")
	if got := call("same", "CRON_TZ=Asia/Tokyo 0 4 * * *", "TZ=America/New_York"); got != (result{}) {
		t.Errorf("a line with a zone ran again in another zone of the host: %+v", got)
	}
}

// TestOnceTickLate: a call long after a tick is for that tick, although the next one is nearer, and does not run twice. With -v
// the second call says which tick has run, where and when.
func TestOnceTickLate(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url := urlOf(srv)
	now, err := srv.Client().Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	// Of some interval three quarters have passed since its last multiple.
	var last time.Time
	interval := 500 * time.Hour
	for ; ; interval += time.Hour {
		since := time.Duration(now.UnixNano()) % interval
		if last = now.Add(-since); since > interval*3/4 && since < interval*7/8 {
			break
		}
	}
	args := []string{"once", "weekly", "--tick", interval.String(), "-v", "--", "echo", "ran"}
	run(t, url, args...).want(t, 0, "ran", "")
	tick := last.UTC().Format(time.RFC3339)
	run(t, url, "records", "--json").want(t, 0, `"key":"weekly@`+tick+`"`, "")
	again := run(t, url, args...)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`skipped: "weekly@` + tick + `" has run, for the tick of ` + last.Local().Format(time.RFC3339),
		", on " + host + ":", ", from " + now.Local().Format("2006-"), "with exit status 0",
	} {
		again.want(t, 0, "", text)
	}
	if again.stdout != "" {
		t.Errorf("%+v", again)
	}
	if quiet := run(t, url, "once", "weekly", "--tick", interval.String(), "--", "echo", "ran"); quiet != (result{}) {
		t.Errorf("without -v: %+v", quiet)
	}
}

// TestOnceTickInProgress: while a run of the tick is in progress, others exit with 0, or as -E says.
func TestOnceTickInProgress(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	awaitCommand(t, start(t, command(t, url, "once", "--tick", "1000h", "a", "--", "sleep", "60")).pid)
	run(t, url, "once", "--tick", "1000h", "a", "--", "echo", "ran").want(t, 0, "", "")
	run(t, url, "once", "-v", "--tick", "1000h", "a", "--", "echo", "ran").want(t, 0, "", "is in progress, for the tick of ")
	run(t, url, "once", "-E", "7", "--tick", "1000h", "a", "--", "echo", "ran").want(t, 7, "", "in progress")
}

// TestOnceLost: a run that loses its lease is ended, and its outcome is unknown, or it may run again.
func TestOnceLost(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t, testkit.AOF())
	for _, retry := range []bool{false, true} {
		args := []string{"once", "--ttl", "2s", "a", "-c", "sleep 60"}
		if retry {
			args = append(args, "--retry", "--retention", "1h")
			args[3] = "b"
		}
		cmd := start(t, command(t, urlOf(srv), args...))
		awaitCommand(t, cmd.Process.Pid)
		srv.Pause()
		testkit.Eventually(t, within, "the command to end", func() bool {
			_, running := processesOf(cmd.Process.Pid)
			return !running
		})
		srv.Resume()
		if status := awaitEnd(t, cmd); status != 79 && status != 69 {
			t.Errorf("retry %v: status %d", retry, status)
		}
	}
	run(t, urlOf(srv), "once", "a", "--", "echo", "ran").want(t, 79, "", "unknown")
	run(t, urlOf(srv), "once", "-w", "30", "b", "--retry", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestOnceMaxHold: a run that --max-hold ends is of unknown outcome, or may run again.
func TestOnceMaxHold(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	args := []string{"--max-hold", "0.1", "--", "sleep", "60"}
	run(t, url, append([]string{"once", "a"}, args...)...).want(t, 79, "", "longer than it may")
	run(t, url, "once", "a", "--", "echo", "ran").want(t, 79, "", "unknown")
	run(t, url, "records", "--state", "unknown").want(t, 0, "longer than it may", "")
	run(t, url, append([]string{"once", "b", "--retry"}, args...)...).want(t, 79, "", "longer than it may")
	run(t, url, "once", "b", "--retry", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestOnceNamesTheJob: the record says which process ran, and for which job. It has no argument and no key of a single run.
func TestOnceNamesTheJob(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	run(t, urlOf(srv), "once", "order:ada", "--", "/bin/echo", "ada").want(t, 0, "ada\n", "")
	run(t, urlOf(srv), "once", "script", "-c", "echo ran").want(t, 0, "ran", "")
	run(t, urlOf(srv), "once", "backup", "--tick", "1000h", "--", "echo", "ran").want(t, 0, "ran\n", "")
	labels := map[string]bool{}
	for r, err := range locks.Records(t.Context(), "") {
		if err != nil || r.Instance == "" {
			t.Errorf("%+v, %v", r, err)
		}
		labels[r.Label] = true
	}
	if len(labels) != 3 || !labels["echo"] || !labels["sh"] || !labels["backup"] {
		t.Errorf("labels %v", labels)
	}
}

// beginRecording starts a run that ends while Redis is down, and returns it when the program has failed to record its end.
func beginRecording(t *testing.T, srv *testkit.Server, flags ...string) (*process, string) {
	t.Helper()
	dir := t.TempDir()
	down, stderr := filepath.Join(dir, "down"), filepath.Join(dir, "stderr")
	args := append([]string{"once", "-v", "a", "-c", "until [ -e " + down + " ]; do sleep 0.02; done"}, flags...)
	cmd := command(t, urlOf(srv), args...)
	file, err := os.Create(stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	cmd.Stderr = file
	started := start(t, cmd)
	awaitCommand(t, started.pid)
	srv.Kill()
	if err := os.WriteFile(down, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, within, "a record that is not confirmed", func() bool {
		text, _ := os.ReadFile(stderr)
		return strings.Contains(string(text), "not recorded yet")
	})
	return started, stderr
}

// TestOnceRecordsAfterOutage: a run that ends while Redis is down is recorded when Redis is back. So no call repeats it, with
// --retry either, and no operator has to find out.
func TestOnceRecordsAfterOutage(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--retry"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t, testkit.AOF())
			started, stderr := beginRecording(t, srv, flags...)
			srv.Restart()
			if status := awaitEnd(t, started); status != 0 {
				text, _ := os.ReadFile(stderr)
				t.Errorf("status %d, %s", status, text)
			}
			again := run(t, urlOf(srv), append([]string{"once", "a", "-c", "echo ran"}, flags...)...)
			if again != (result{}) {
				t.Errorf("the next call: %+v", again)
			}
		})
	}
}

// TestOnceRecordingInterrupted: a signal ends the program although Redis does not come back, and the error says what was
// not recorded.
func TestOnceRecordingInterrupted(t *testing.T) {
	t.Parallel()
	started, stderr := beginRecording(t, testkit.Start(t))
	send(syscall.SIGTERM, started.pid)
	if status := awaitEnd(t, started); status != 69 {
		t.Errorf("status %d", status)
	}
	if text, _ := os.ReadFile(stderr); !strings.Contains(string(text), "the command has ended with 0, but that was not recorded") {
		t.Errorf("it says %q", text)
	}
}

// TestFailureWithoutData: Redis has lost its data when a run with --retry fails. No other attempt has followed, and the
// status is the exit status of the command.
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
