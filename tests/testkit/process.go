package testkit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SupervisorFunction is the function which runs as a goroutine while a server
// runs. Pass it to goleak.IgnoreAnyFunction to look for leaks within a test
// whose servers still run; a check after the tests does not need it.
const SupervisorFunction = "github.com/holdfast-go/holdfast/tests/testkit.(*process).supervise"

var errAddrInUse = errors.New("address already in use")

// noDebugDirective has the programs which refused enable-debug-command: servers
// before 7.0 do not know it, and allow DEBUG without.
var noDebugDirective sync.Map

// process is one run of a server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after the process was waited for
}

// startProcess runs cmd. The kernel ties the signal a child gets at its
// parent's death to the thread that forked it, so that thread has to live as
// long as the child: each process has a goroutine which is locked to its
// thread, starts it, waits for it, and is gone with it.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.supervise(started)
	return p, <-started
}

func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // killed by us, or failed to start: its log tells
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it is dead already
	<-p.done
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// launch configures the server for s.addr, starts it and waits until it answers.
// The caller holds s.mu.
func (s *Server) launch() error {
	_, refused := noDebugDirective.Load(s.binary)
	debug := !refused
	err := s.launchWith(debug)
	if err != nil && debug && strings.Contains(s.log(), "enable-debug-command") {
		noDebugDirective.Store(s.binary, nil)
		err = s.launchWith(false)
	}
	return err
}

func (s *Server) launchWith(debug bool) error {
	if err := os.WriteFile(s.configPath(), []byte(s.configFile(debug)), 0o600); err != nil {
		return err
	}
	return s.run()
}

// run starts the server as it is configured and waits until it answers. The
// caller holds s.mu.
func (s *Server) run() error {
	// A file, not a pipe: a pipe would need a goroutine that reads it.
	out, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(s.binary, s.configPath())
	if s.cfg.sentinel {
		cmd.Args = append(cmd.Args, "--sentinel")
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.SysProcAttr = sysProcAttr()
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.binary, err)
	}
	if err := s.awaitReady(p); err != nil {
		p.kill()
		return err
	}
	s.proc = p
	return nil
}

// configFile is used instead of flags since it takes directives of several
// arguments as they are.
func (s *Server) configFile(debug bool) string {
	all := []directive{
		{"daemonize", "no"},
		{"loglevel", "warning"},
		{"dir", fmt.Sprintf("%q", s.dir)},
		{"appendonly", "no"},
		// A replica is in sync at once, and keeps no copy on disk that it would come back with.
		{"repl-diskless-sync", "yes"},
		{"repl-diskless-sync-delay", "0"},
		{"repl-diskless-load", "swapdb"},
	}
	if !slices.ContainsFunc(s.cfg.directives, func(d directive) bool { return d.name == "save" }) {
		// A snapshot that no test lives to see, so that clients do not warn of a server without any.
		all = append(all, directive{"save", "3600000 1"})
	}
	if s.network == "unix" {
		all = append(all, directive{"port", "0"}, directive{"unixsocket", fmt.Sprintf("%q", s.addr)})
	} else {
		host, port, _ := net.SplitHostPort(s.addr)
		all = append(all, directive{"bind", host}, directive{"port", port})
	}
	if debug {
		all = append(all, directive{"enable-debug-command", "yes"})
	}
	var b strings.Builder
	for _, d := range append(all, s.cfg.directives...) {
		fmt.Fprintf(&b, "%s %s\n", d.name, d.value)
	}
	return b.String()
}

// awaitReady returns when the server answers anything but that it is loading.
func (s *Server) awaitReady(p *process) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.ping(p)
		if err == nil {
			return nil
		}
		if p.exited() && strings.Contains(s.log(), "ddress already in use") {
			return fmt.Errorf("%w: %s\n%s", errAddrInUse, s.addr, s.log())
		}
		if p.exited() {
			return fmt.Errorf("%s ended at its start:\n%s", s.binary, s.log())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer after %v: %w\n%s", s.binary, startTimeout, err, s.log())
		}
		time.Sleep(time.Millisecond)
	}
}

// ping reports whether p answers. Any answer will do, also that a password is
// needed, but that the data are being loaded. On a TCP port another process
// can answer, while p is about to find the port taken.
func (s *Server) ping(p *process) error {
	reply, err := s.roundTrip("PING")
	if err != nil {
		return err
	}
	if strings.HasPrefix(reply, "-LOADING") {
		return errors.New(reply)
	}
	if s.network != "tcp" {
		return nil
	}
	info, err := s.roundTrip("INFO server")
	if err != nil {
		return err
	}
	pid, known := infoField(info, "process_id")
	if known && pid != strconv.Itoa(p.cmd.Process.Pid) {
		return fmt.Errorf("%s is taken by process %s", s.addr, pid)
	}
	return nil
}

func (s *Server) configPath() string { return filepath.Join(s.dir, "redis.conf") }

func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

func (s *Server) log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
