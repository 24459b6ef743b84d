//go:build unix

package interop_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// within bounds what must happen, however slow the machine.
const within = 3 * time.Minute

// party is a process that locks, as a test sees it.
type party struct {
	*process
	t *testing.T
}

// process is what several tests may share.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}

	mu      sync.Mutex // guards those below
	calls   int
	waiting map[string]chan interop.Answer
	log     bytes.Buffer
}

// forTest returns the same process for a part of the test that has started it.
func (q *party) forTest(t *testing.T) *party { return &party{q.process, t} }

// java starts a process with that version of Redisson. TTL is its watchdog's; the settings are more of them.
func (p *place) java(t *testing.T, version string, ttl time.Duration, settings ...any) *party {
	t.Helper()
	cmd := exec.Command("java", "-XX:+UseSerialGC", "-Xmx512m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath(t, version), "interop.Main")
	return p.start(t, "java", ttl, cmd, settings...)
}

// golang starts a process with holdfast.
func (p *place) golang(t *testing.T, ttl time.Duration, settings ...any) *party {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), interop.Env+"=1")
	return p.start(t, "go", ttl, cmd, settings...)
}

// start runs the process until the test ends.
func (p *place) start(t *testing.T, name string, ttl time.Duration, cmd *exec.Cmd, settings ...any) *party {
	t.Helper()
	q := &party{&process{
		name: name, cmd: cmd, ended: make(chan struct{}), waiting: make(map[string]chan interop.Answer),
	}, t}
	cmd.Stderr = q
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	q.stdin = stdin
	go q.read(stdout)
	t.Cleanup(q.end)
	q.must("main", "connect", append(settings, "mode", p.mode, "addrs", p.addrs, "master", testkit.MasterName,
		"watchdog", ttl.Milliseconds(), "referee", p.referee.Addr())...)
	return q
}

// Write keeps what the process says on stderr.
func (q *process) Write(text []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.log.Write(text)
}

// read hands answers to those who wait for them, until the process has ended.
func (q *process) read(stdout io.Reader) {
	defer close(q.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		a, err := interop.ParseAnswer(lines.Text())
		if err != nil {
			_, _ = q.Write(append(lines.Bytes(), '\n'))
			continue
		}
		q.mu.Lock()
		if answered, ok := q.waiting[a.ID]; ok {
			delete(q.waiting, a.ID)
			answered <- a
		}
		q.mu.Unlock()
	}
	_ = q.cmd.Wait() // killed by us, or the log tells
}

// end ends the process at the end of its test.
func (q *party) end() {
	_ = q.signal(syscall.SIGCONT)
	_ = q.stdin.Close()
	select {
	case <-q.ended:
	case <-time.After(within):
		q.kill()
		q.t.Errorf("%s does not end", q.name)
	}
	if q.t.Failed() && q.log.Len() > 0 {
		q.t.Logf("%s: %s", q.name, q.log.String())
	}
}

// kill ends the process without a chance to do anything.
func (q *process) kill() {
	_ = q.cmd.Process.Kill()
	<-q.ended
}

func (q *process) signal(s syscall.Signal) error { return q.cmd.Process.Signal(s) }

// begin lets a thread do something.
func (q *process) begin(thread, verb string, arguments ...any) <-chan interop.Answer {
	c := interop.Command{Thread: thread, Verb: verb, Arguments: make(map[string]string)}
	for i := 0; i < len(arguments); i += 2 {
		c.Arguments[fmt.Sprint(arguments[i])] = fmt.Sprint(arguments[i+1])
	}
	answered := make(chan interop.Answer, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	c.ID = strconv.Itoa(q.calls)
	q.waiting[c.ID] = answered
	if _, err := fmt.Fprintln(q.stdin, c); err != nil {
		delete(q.waiting, c.ID)
		answered <- interop.Answer{Failed: true, Value: err.Error()}
	}
	return answered
}

// await waits for what begin has begun.
func (q *process) await(answered <-chan interop.Answer, most time.Duration) (interop.Answer, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case a := <-answered:
		return a, nil
	case <-q.ended:
		return interop.Answer{}, fmt.Errorf("%s has ended", q.name)
	case <-timer.C:
		return interop.Answer{}, fmt.Errorf("%s did not answer within %v", q.name, most)
	}
}

// answer is await for answers that have to come.
func (q *party) answer(answered <-chan interop.Answer, most time.Duration) interop.Answer {
	q.t.Helper()
	a, err := q.await(answered, most)
	if err != nil {
		q.t.Fatal(err)
	}
	return a
}

// do lets a thread do something, and returns what became of it.
func (q *party) do(thread, verb string, arguments ...any) interop.Answer {
	q.t.Helper()
	return q.answer(q.begin(thread, verb, arguments...), within)
}

// must is do for what has to succeed.
func (q *party) must(thread, verb string, arguments ...any) interop.Answer {
	q.t.Helper()
	a := q.do(thread, verb, arguments...)
	if a.Failed {
		q.t.Fatalf("%s: %s %v: %s", q.name, verb, arguments, a.Value)
	}
	return a
}

// want checks what a command returns, or the class of its error.
func (q *party) want(value, thread, verb string, arguments ...any) {
	q.t.Helper()
	a := q.do(thread, verb, arguments...)
	got := a.Value
	if a.Failed {
		got, _, _ = strings.Cut(got, " ")
	}
	if got != value {
		q.t.Errorf("%s: %s %v = %s, want %s", q.name, verb, arguments, a.Value, value)
	}
}
