//go:build unix

package asynqworker_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
)

// member is a server, which is a process.
type member struct {
	storm *storm
	name  string
	cmd   *exec.Cmd // nil once it was ended
	stdin io.Closer
	ended chan error
}

func (m *member) start() {
	t := m.storm.t
	t.Helper()
	order := m.storm.order
	order.Server = m.name
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asynqworker.Env+"="+string(text))
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

// signal stops the process, lets it continue, or kills it.
func (m *member) signal(s syscall.Signal) {
	m.storm.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.storm.t.Fatal(err)
	}
}

// kill ends the server without a chance to do anything.
func (m *member) kill() { _ = m.end(false) }

// end ends the process: in good order, which may fail, or by SIGKILL.
func (m *member) end(good bool) error {
	if m.cmd == nil {
		return nil
	}
	process := m.cmd.Process
	m.cmd = nil
	if !good {
		_ = process.Kill() // before the end of its input, at which it would end in good order
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
