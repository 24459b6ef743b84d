package round_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// within bounds what must happen, however slow the machine.
const within = 60 * time.Second

// fleet is the workers of a round. It is used by the goroutine of the test only.
type fleet struct {
	t        testing.TB
	program  string
	d        *topology.Deployment
	log      *history.Log
	register string
	seed     uint64
	limits   *worker.Limits
	calm     bool
	members  []*member

	grants atomic.Int64  // that the workers have told of
	warm   chan struct{} // closed when there are enough of them for the first fault
}

// member is one place among the workers, with a process after the other.
type member struct {
	process int // from 1
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	ended   chan error
}

func newFleet(t testing.TB, program string, d *topology.Deployment, log *history.Log, register string, seed uint64, limits *worker.Limits) *fleet {
	t.Helper()
	f := &fleet{t: t, program: program, d: d, log: log, register: register, seed: seed, limits: limits, warm: make(chan struct{})}
	for range workers {
		f.members = append(f.members, &member{})
	}
	t.Cleanup(func() {
		for i := range f.members {
			f.Kill(i)
		}
	})
	for i := range f.members {
		f.Restart(i)
	}
	return f
}

// Size implements nemesis.Fleet, as the next ones do.
func (f *fleet) Size() int { return len(f.members) }

func (f *fleet) Restart(i int) {
	f.t.Helper()
	m := f.members[i]
	m.process++
	order, err := json.Marshal(worker.Order{
		ID: fmt.Sprintf("w%d.%d", i+1, m.process), Seed: f.seed + uint64(1000*m.process+i), Link: f.d.Link(i),
		Register: f.register, TTL: ttl, ReplicaAck: f.d.Acknowledging(), Goroutines: goroutines,
		Pause: 40 * time.Millisecond, SmallPool: i%2 == 1, Replicas: i%3 == 0, Limits: f.limits,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(f.program)
	cmd.Env = append(os.Environ(), worker.Env+"="+string(order))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		m.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	m.cmd, m.ended = cmd, make(chan error, 1)
	go f.listen(m, cmd, out)
	if f.calm {
		f.Tell(i, worker.Command{Do: worker.Calm})
	}
}

// listen copies what the process says. A line that it did not live to finish is left out.
func (f *fleet) listen(m *member, cmd *exec.Cmd, out io.Reader) {
	ended := m.ended
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e history.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		f.log.Copy(lines.Bytes())
		if check.Grants(e) && f.grants.Add(1) == 2*check.Floor { // twice: a call may tell of its grant more than once
			close(f.warm)
		}
	}
	ended <- cmd.Wait()
}

// Kill also ends a process that is stopped. One that is dead stays so.
func (f *fleet) Kill(i int) {
	m := f.members[i]
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill() // before the end of its input, which would make it end in good order
	<-m.ended
	_ = m.stdin.Close()
	m.cmd = nil
}

func (f *fleet) Stop(i int) { f.signal(i, syscall.SIGSTOP) }

func (f *fleet) Resume(i int) { f.signal(i, syscall.SIGCONT) }

func (f *fleet) signal(i int, s syscall.Signal) {
	f.t.Helper()
	if err := f.members[i].cmd.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) Tell(i int, c worker.Command) {
	f.t.Helper()
	text, err := json.Marshal(c)
	if err == nil {
		_, err = f.members[i].stdin.Write(append(text, '\n'))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// awaitGrants waits until the round proves something before its first fault.
func (f *fleet) awaitGrants() {
	f.t.Helper()
	select {
	case <-f.warm:
	case <-time.After(within):
		f.t.Fatalf("%d grants within %v, without a fault", f.grants.Load(), within)
	}
}

// calmDown lets the workers let go of all that they lock from now on.
func (f *fleet) calmDown() {
	f.t.Helper()
	f.calm = true
	for i := range f.members {
		f.Tell(i, worker.Command{Do: worker.Calm})
	}
}

// finish lets all workers end in good order.
func (f *fleet) finish() {
	f.t.Helper()
	for _, m := range f.members {
		_ = m.stdin.Close()
	}
	for i, m := range f.members {
		select {
		case err := <-m.ended:
			if err != nil {
				f.t.Errorf("worker %d: %v", i+1, err)
			}
			m.cmd = nil
		case <-time.After(within):
			f.t.Errorf("worker %d does not end", i+1)
			_ = m.cmd.Process.Signal(syscall.SIGQUIT) // it tells where it hangs
			<-m.ended
			m.cmd = nil
		}
	}
}
