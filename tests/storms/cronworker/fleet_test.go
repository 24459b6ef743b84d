//go:build unix

package cronworker_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// within bounds what must happen, however slow the machine.
const within = 30 * time.Second

// fleet is some replicas with the same jobs, and what they have told.
type fleet struct {
	t       testing.TB
	program string // of the replicas
	server  *testkit.Server
	referee *testkit.Server
	journal *cronworker.Journal
	jobs    []cronworker.Job
	members []*member
	entries []cronworker.Entry
}

// member is a replica, which may be another process after a restart.
type member struct {
	fleet  *fleet
	name   string
	offset time.Duration // of its clock, if the program heeds that
	lag    time.Duration
	cmd    *exec.Cmd // nil while it is dead
	stdin  io.Closer
	ended  chan error
}

// newFleet has no replicas yet. Without a program the test itself is it.
func newFleet(t testing.TB, program string, server *testkit.Server, jobs ...cronworker.Job) *fleet {
	t.Helper()
	if program == "" {
		program = os.Args[0]
	}
	referee := testkit.Start(t)
	patient := func(o *redis.Options) { o.ReadTimeout = within } // it is asked to wait
	f := &fleet{
		t: t, program: program, server: server, referee: referee, jobs: jobs,
		journal: cronworker.OpenJournal(referee.Client(patient)),
	}
	t.Cleanup(func() {
		for _, m := range f.members {
			m.end(false)
		}
	})
	return f
}

// join starts one more replica.
func (f *fleet) join(name string, offset, lag time.Duration) *member {
	f.t.Helper()
	m := &member{fleet: f, name: name, offset: offset, lag: lag}
	f.members = append(f.members, m)
	m.start()
	return m
}

// joined starts replicas that come for each tick so much later than the first one.
func (f *fleet) joined(lags ...time.Duration) *fleet {
	f.t.Helper()
	for i, lag := range lags {
		f.join(string(rune('a'+i)), 0, lag)
	}
	f.await("the replicas to be up", func() bool { return len(f.of(cronworker.Up, "")) >= len(lags) })
	return f
}

// await reads the journal until cond is true of the entries.
func (f *fleet) await(what string, cond func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(within); !cond(); {
		if time.Now().After(deadline) {
			f.tell(40)
			f.t.Fatalf("not within %v: %s", within, what)
		}
		f.read()
	}
}

func (f *fleet) read() {
	f.t.Helper()
	entries, err := f.journal.Next(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	f.entries = append(f.entries, entries...)
}

// watch reads the journal for so long.
func (f *fleet) watch(d time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		f.read()
	}
}

// tell logs the last entries.
func (f *fleet) tell(n int) {
	f.t.Helper()
	for _, e := range f.entries[max(0, len(f.entries)-n):] {
		f.t.Logf("%s %+v", e.At.Format("05.000000"), e)
	}
}

// of returns the entries of a kind, of one job or of all.
func (f *fleet) of(kind cronworker.Kind, job string) (found []cronworker.Entry) {
	for _, e := range f.entries {
		if e.Kind == kind && (job == "" || e.Job == job) {
			found = append(found, e)
		}
	}
	return found
}

// begun awaits a run of a job of which cond is true.
func (f *fleet) begun(what, job string, cond func(cronworker.Entry) bool) (run cronworker.Entry) {
	f.t.Helper()
	f.await(what, func() bool {
		for _, e := range f.of(cronworker.Begin, job) {
			if cond(e) {
				run = e
				return true
			}
		}
		return false
	})
	return run
}

// running awaits a first attempt of a job that continues.
func (f *fleet) running(job string) cronworker.Entry {
	f.t.Helper()
	return f.begun("a run", job, func(e cronworker.Entry) bool {
		m := f.by(e)
		_, ended := f.end(e)
		return e.Attempt == 1 && !ended && m.cmd != nil && m.cmd.Process.Pid == e.PID
	})
}

// end returns the end of a run, and whether it has ended.
func (f *fleet) end(run cronworker.Entry) (cronworker.Entry, bool) {
	for _, e := range f.of(cronworker.End, run.Job) {
		if e.PID == run.PID && e.Tick == run.Tick && e.Attempt == run.Attempt {
			return e, true
		}
	}
	return cronworker.Entry{}, false
}

// by returns the replica that made an entry.
func (f *fleet) by(e cronworker.Entry) *member {
	f.t.Helper()
	for _, m := range f.members {
		if m.name == e.Replica {
			return m
		}
	}
	f.t.Fatalf("no replica %q", e.Replica)
	return nil
}

// now is the time by the clock of the journal.
func (f *fleet) now() time.Time {
	f.t.Helper()
	now, err := f.journal.Now(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return now
}

// finish ends all replicas in good order and reads the rest of the journal.
func (f *fleet) finish() {
	f.t.Helper()
	for _, m := range f.members {
		if err := m.end(true); err != nil {
			f.t.Errorf("replica %s: %v", m.name, err)
		}
	}
	f.read()
}

// locks returns a client to look at the history.
func (f *fleet) locks() *core.Client {
	f.t.Helper()
	locks, err := core.New(f.server.Client())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = locks.Close() })
	return locks
}

func (m *member) start() {
	t := m.fleet.t
	t.Helper()
	order, err := json.Marshal(cronworker.Order{
		Replica: m.name, Lag: m.lag, Jobs: m.fleet.jobs,
		Locks:   cronworker.Server{Network: m.fleet.server.Network(), Addr: m.fleet.server.Addr()},
		Journal: cronworker.Server{Network: m.fleet.referee.Network(), Addr: m.fleet.referee.Addr()},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(m.fleet.program)
	cmd.Env = append(os.Environ(), cronworker.Env+"="+string(order), cronworker.ClockEnv+"="+m.offset.String())
	cmd.Stderr = os.Stderr
	m.stdin, err = cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	m.cmd, m.ended = cmd, make(chan error, 1)
	go func() { m.ended <- cmd.Wait() }()
}

// kill ends the replica without a chance to do anything.
func (m *member) kill() {
	m.fleet.t.Helper()
	m.note(cronworker.Killed)
	m.end(false)
}

func (m *member) stop() {
	m.fleet.t.Helper()
	m.note(cronworker.Stopped)
	m.signal(syscall.SIGSTOP)
}

func (m *member) resume() {
	m.fleet.t.Helper()
	m.note(cronworker.Resumed)
	m.signal(syscall.SIGCONT)
}

func (m *member) signal(s syscall.Signal) {
	m.fleet.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.fleet.t.Fatal(err)
	}
}

func (m *member) note(kind cronworker.Kind) {
	m.fleet.t.Helper()
	e := cronworker.Entry{Kind: kind, Replica: m.name, PID: m.cmd.Process.Pid}
	if err := m.fleet.journal.Record(context.Background(), e); err != nil {
		m.fleet.t.Fatal(err)
	}
}

// end ends the process: in good order, which may fail, or by SIGKILL.
func (m *member) end(good bool) error {
	if m.cmd == nil {
		return nil
	}
	process := m.cmd.Process
	m.cmd = nil
	if !good {
		_ = process.Kill() // before the end of its input, at which it would tell others that it ends
	}
	_ = m.stdin.Close()
	select {
	case err := <-m.ended:
		if good {
			return err
		}
		return nil
	case <-time.After(within):
		_ = process.Kill()
		<-m.ended
		return context.DeadlineExceeded
	}
}
