//go:build linux || darwin

package supervise

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"
)

// giveUpTimeout is how long an interrupted supervisor may take to unlock and to end while no command runs. It is longer than
// what bounds a release, so it counts only if Redis hangs and the URL of Redis has switched the timeouts off.
const giveUpTimeout = 15 * time.Second

// received handles a signal that one of both processes has received. It is never lost:
//
//   - Before the command is started, it ends the context of the supervisor. See run.fork, which has the same mutex.
//   - While the command runs, the command gets it. If the command is being ended, another one must not follow, so it ends the
//     context too. TERM does so even if the command is ended after it, see run.finish.
//   - If it was for the group, came before the command was started and is handled here right after that, the command has
//     missed it. So the command gets it again, see pairing.
//   - After the command has ended, it ends the context. See forward for a signal that waits for its pair at that moment.
func (k *Supervisor) received(from origin, sig syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.command != 0 {
		if sig == syscall.SIGCONT {
			continueOtherGroup(k.command)
		}
		early := from == fromSupervisor && ending(sig) && now() < k.startedAt.add(parentSignalTimeout)
		k.pairs.received(from, sig, early)
		k.asked = k.asked || sig == syscall.SIGTERM
	}
	if k.command == 0 || k.stopping {
		k.interruptLocked(sig)
	}
}

// forward sends a signal to the command if it still runs. It holds the mutex because the process id may be
// another process's once the command was waited for. A signal whose command has ended meanwhile ends the context.
func (k *Supervisor) forward(sig syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.command == 0 {
		k.interruptLocked(sig)
		return
	}
	forward(k.command, sig)
	if ending(sig) {
		forward(k.command, syscall.SIGCONT) // otherwise a command that is stopped would not act on the signal
	}
}

// commandStopped handles that the command has stopped or continued. It looks which, because on macOS the status does not say.
func (k *Supervisor) commandStopped(pid int, ws syscall.WaitStatus) {
	if isStopped(pid) {
		k.link.send(wordStopped, strconv.Itoa(pid), strconv.Itoa(int(ws.StopSignal())))
		return
	}
	k.page.continueParent()
}

// lostParent ends the context because the parent has ended.
func (k *Supervisor) lostParent() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interruptLocked(syscall.SIGKILL)
}

// whyInterrupted returns why the context has ended.
func (k *Supervisor) whyInterrupted() Reason {
	var i *Interrupted
	if errors.As(context.Cause(k.ctx), &i) && i.Signal != syscall.SIGKILL {
		return signaled
	}
	return ParentKilled
}

// setStopping says that the command is being ended.
func (k *Supervisor) setStopping() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopping = true
}

// interruptLocked ends the context of the supervisor if the signal is one that ends it.
func (k *Supervisor) interruptLocked(sig syscall.Signal) {
	if !ending(sig) || k.ctx.Err() != nil {
		return
	}
	k.interrupt(&Interrupted{Signal: sig})
	k.idleSince = time.Now()
	time.AfterFunc(giveUpTimeout, func() { k.giveUp(sig) })
}

// giveUp ends the process if no command has run for giveUpTimeout, whatever it waits for. The lock expires then.
func (k *Supervisor) giveUp(sig syscall.Signal) {
	k.mu.Lock()
	wait := giveUpTimeout
	if !k.running {
		wait = time.Until(k.idleSince.Add(giveUpTimeout))
	}
	k.mu.Unlock()
	if wait > 0 {
		time.AfterFunc(wait, func() { k.giveUp(sig) })
		return
	}
	k.exit(SignalStatus(sig))
}
