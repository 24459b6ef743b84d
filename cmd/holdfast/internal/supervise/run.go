//go:build linux || darwin

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// run is one run of a command.
type run struct {
	supervisor *Supervisor
	hold       Hold
	limits     Limits
	stops      stops
	alarm      *alarm

	exited chan syscall.WaitStatus // of the command
	gone   chan struct{}           // closed when no descendant is left

	ended     bool    // the command has
	killedAt  instant // when KILL was sent first, 0 before
	survivors bool    // they were reported
	outcome   Outcome
}

// killInterval is how often KILL is repeated while there are descendants, because they may fork.
const killInterval = 5 * time.Millisecond

// survivorsAfter is how long after KILL processes that have not ended are reported.
const survivorsAfter = 5 * time.Second

// Run starts the command, and returns when it and all its descendants have ended, at the latest when the hold does. It
// first waits for a lease that is long enough, and for a parent that is stopped. The error says why the command did not
// start: an error of the system, the cause of the hold's context, or an [Interrupted].
func (k *Supervisor) Run(hold Hold, c Command, limits Limits) (Outcome, error) {
	r := &run{
		supervisor: k, hold: hold, limits: limits, stops: stops{killBefore: limits.KillBefore},
		exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{}),
	}
	var err error
	if r.alarm, err = newAlarm(); err != nil {
		return Outcome{}, err
	}
	defer r.alarm.close()
	if err := r.awaitStart(); err != nil {
		return Outcome{}, err
	}
	defer r.finish()
	r.setDeadline(until(hold.ValidUntil())) // before the command starts: from then on the parent may have to end it
	if err := r.start(c); err != nil {
		return Outcome{}, err
	}
	if limits.MaxHold > 0 {
		r.stops.add(HeldTooLong, now().add(limits.MaxHold))
	}
	r.supervise()
	return r.outcome, nil
}

// awaitStart waits until the lease is long enough and the parent allows the command to start. The lease comes first: a parent
// that is stopped meanwhile must be asked after that.
func (r *run) awaitStart() error {
	for {
		if err := r.awaitLease(); err != nil {
			return err
		}
		if err := r.awaitParent(); err != nil {
			return err
		}
		if r.longEnough() { // otherwise this process was stopped meanwhile
			return nil
		}
	}
}

// longEnough reports whether the command may start under the lease as it is, so that TERM is not due soon.
func (r *run) longEnough() bool {
	return time.Until(r.hold.ValidUntil()) > max(r.limits.Least, r.limits.KillBefore+r.limits.Margin)
}

// awaitLease waits for renewals until the lease is long enough. The wait ends with the lease.
func (r *run) awaitLease() error {
	for !r.longEnough() {
		select {
		case <-r.supervisor.renewed:
		case <-r.hold.Context().Done():
			return context.Cause(r.hold.Context())
		case <-r.supervisor.ctx.Done():
			return context.Cause(r.supervisor.ctx)
		}
	}
	return nil
}

// awaitParent asks the parent whether the command may start. A parent that is stopped does not answer.
func (r *run) awaitParent() error {
	select {
	case <-r.supervisor.mayStart: // the late answer of an earlier run
	default:
	}
	r.supervisor.link.send(wordGranted)
	select {
	case <-r.supervisor.mayStart:
	case <-r.hold.Context().Done():
	case <-r.supervisor.ctx.Done():
	}
	if err := context.Cause(r.supervisor.ctx); err != nil {
		return err
	}
	return context.Cause(r.hold.Context())
}

// start starts the command on a thread of its own, which lives until no descendant is left, because the kernel kills the
// command when that thread ends.
func (r *run) start(c Command) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // forever: the thread ends with the goroutine
		pid, err := r.fork(c)
		started <- err
		if err == nil {
			r.reap(pid)
		}
	}()
	return <-started
}

// finish says that no command runs. A command that was ended after TERM must not be followed by another one: it has not
// ended by itself in time.
func (r *run) finish() {
	k := r.supervisor
	k.page.set(never)
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.outcome.Stopped != "" && k.asked {
		k.interruptLocked(syscall.SIGTERM)
	}
	k.running, k.stopping, k.asked, k.idleSince = false, false, false, time.Now()
}

// fork starts the command, while signals wait for its process id. It returns an [Interrupted] in place of starting it if one
// has arrived since the parent was asked: that signal would reach no process.
func (r *run) fork(c Command) (int, error) {
	r.supervisor.mu.Lock()
	defer r.supervisor.mu.Unlock()
	if err := context.Cause(r.supervisor.ctx); err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Env: c.Env(), Files: []uintptr{0, 1, 2}, Sys: attributes()}
	for i, file := range []*os.File{1: c.Stdout, 2: c.Stderr} {
		if file != nil {
			attr.Files[i] = file.Fd()
		}
	}
	pid, err := syscall.ForkExec(c.Path, c.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without a first line that names its interpreter, as execvp does
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", c.Path}, c.Args[1:]...), attr)
	}
	if err != nil {
		return 0, &os.PathError{Op: "run", Path: c.Path, Err: err}
	}
	r.supervisor.command, r.supervisor.running, r.supervisor.startedAt = pid, true, now()
	return pid, nil
}

// reap waits for the command and all its descendants. The command is forgotten at once, because its process id may soon
// belong to another process.
func (r *run) reap(command int) {
	defer close(r.gone)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return
		case pid == command && !ws.Exited() && !ws.Signaled():
			r.supervisor.commandStopped(pid, ws)
		case pid == command:
			r.supervisor.mu.Lock()
			r.exited <- ws // before a signal can find that no command runs, which would end the context
			r.supervisor.command = 0
			r.supervisor.mu.Unlock()
			r.supervisor.page.continueParent()
		}
	}
}

// supervise handles all that can happen until no descendant is left.
func (r *run) supervise() {
	lost, interrupted := r.hold.Context().Done(), r.supervisor.ctx.Done()
	for {
		r.noticeEnd()
		r.act(now())
		select {
		case <-r.alarm.C:
		case <-r.supervisor.renewed:
		case <-lost:
			lost = nil
			r.stops.add(LeaseLost, now())
		case <-interrupted:
			interrupted = nil
			r.stops.add(r.supervisor.whyInterrupted(), now())
		case status := <-r.exited:
			r.commandEnded(status)
		case <-r.gone:
			r.noticeEnd()
			return
		}
	}
}

// noticeEnd looks whether the command has ended. It is called before each act, because a signal that arrives after that
// end must not be reported as what ended the command.
func (r *run) noticeEnd() {
	select {
	case status := <-r.exited:
		r.commandEnded(status)
	default:
	}
}

// commandEnded records the status, and ends what the command has left behind.
func (r *run) commandEnded(status syscall.WaitStatus) {
	r.ended, r.outcome.status = true, status
	if !r.limits.AwaitAll {
		r.stops.add(leftBehind, now())
	}
}

// setDeadline stores when the parent ends the command, given the end of the lease.
func (r *run) setDeadline(end instant) { r.supervisor.page.set(end.add(-r.limits.Margin * 3 / 4)) }

// act sends what is due, moves the deadline of the parent, and sets the alarm.
func (r *run) act(at instant) {
	end := until(r.hold.ValidUntil())
	r.setDeadline(end)
	lease := stop{LeaseExpires, end.add(-r.limits.KillBefore), end.add(-r.limits.Margin)}
	term, killing, reason := r.stops.due(lease, at)
	if (term || killing) && !r.ended && r.outcome.Stopped == "" {
		r.outcome.Stopped = reason
		r.supervisor.setStopping()
		fmt.Fprintf(r.supervisor.Stderr(), "holdfast: ending the command: %s\n", reason)
	}
	next := r.stops.next(lease, at)
	switch {
	case killing:
		kill(descendants(nil), syscall.SIGKILL)
		r.warnSurvivors(at)
		next = at.add(killInterval)
	case term:
		all := descendants(nil)
		kill(all, syscall.SIGTERM)
		kill(all, syscall.SIGCONT) // those that are stopped receive TERM now
	}
	r.alarm.set(next)
}

// warnSurvivors reports, once, the processes that KILL does not end: the kernel waits for a device, or they belong to
// another user.
func (r *run) warnSurvivors(at instant) {
	if r.killedAt == 0 {
		r.killedAt = at
	}
	if !r.survivors && at > r.killedAt.add(survivorsAfter) {
		r.survivors = true
		fmt.Fprintf(r.supervisor.Stderr(), "holdfast: these processes have not ended after KILL: %v\n", descendants(nil))
	}
}
