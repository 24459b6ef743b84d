package holdfast_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// silentServer accepts connections and never answers. It returns its URL, and a channel that is sent to whenever it was asked.
func silentServer(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests, ended := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1))
			select {
			case requests <- struct{}{}:
			default:
			}
		}
	}()
	return "redis://" + listener.Addr().String(), requests
}

// TestSignalBesideFrozenRedis: a signal ends the program although Redis does not reply, and the URL lets it wait forever.
func TestSignalBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"exec":        {"exec", "n", "--", "true"},
		"exec -n":     {"exec", "-n", "n", "--", "true"},
		"exec --fair": {"exec", "--fair", "n", "--", "true"},
		"once":        {"once", "n", "--", "true"},
		"once --tick": {"once", "n", "--tick", "1h", "--", "true"},
		"elect":       {"elect", "n", "--", "true"},
		"ls":          {"ls"},
		"show":        {"show", "n"},
		"watch":       {"watch", "n"},
		"unlock":      {"unlock", "--yes", "n"},
		"records":     {"records"},
		"cron ls":     {"cron", "ls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := silentServer(t)
			started := start(t, command(t, url+"?read_timeout=-1s&dial_timeout=1h", args...))
			select {
			case <-asked:
			case <-time.After(within):
				t.Fatal("Redis was not asked")
			}
			send(syscall.SIGTERM, started.pid)
			if status := awaitEnd(t, started); status != 143 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// TestTLSWithoutAnswer: a server that does not reply to a client with TLS may have none, so the error suggests it.
func TestTLSWithoutAnswer(t *testing.T) {
	t.Parallel()
	silent, _ := silentServer(t)
	url := strings.Replace(silent, "redis:", "rediss:", 1)
	run(t, url, "exec", "-w", "0.3", "n", "--", "true").want(t, 69, "", "does the server have it at this port?")
	if got := run(t, silent, "exec", "-w", "0.3", "n", "--", "true"); strings.Contains(got.stderr, "TLS") {
		t.Errorf("%+v", got)
	}
}

// TestOutageIsNoConflict: a Redis that does not answer has its own status, although the wait has ended without the lock.
func TestOutageIsNoConflict(t *testing.T) {
	t.Parallel()
	silent, _ := silentServer(t)
	for name, url := range map[string]string{"refused": "redis://127.0.0.1:1", "silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"exec -n -E 0", "exec -w 0.3 -E 0", "exec --fair -w 0.3 -E 0", "once -w 0.3 -E 0", "once --tick 1h"} {
				got := run(t, url, append(strings.Fields(args), "n", "--", "echo", "ran")...)
				got.want(t, 69, "", "no answer from Redis")
			}
		})
	}
}

// TestTryBesideFrozenRedis: a request without waiting gives up beside a Redis that does not answer, runs nothing, and leaves
// no lock behind when Redis replies again.
func TestTryBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	srv.Pause()
	var all []*process
	for _, flags := range []string{"-n", "-w 0", "-n --fair", "-n -j 2", "-n -s"} {
		args := append(append([]string{"exec"}, strings.Fields(flags)...), "n", "--", "echo", "ran")
		all = append(all, start(t, command(t, urlOf(srv), args...)))
	}
	for _, p := range all {
		if status := awaitEnd(t, p); status != 69 {
			t.Errorf("%v: status %d", p.Args, status)
		}
	}
	srv.Resume()
	for range 2 {
		run(t, urlOf(srv), "exec", "-n", "n", "--", "echo", "ran").want(t, 0, "ran", "")
	}
}

// TestSlowRedisKeepsNoLock: a call gives up while the answer that grants its lock is under way. It withdraws the request when
// Redis replies again soon after, so that the next call gets the lock.
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
