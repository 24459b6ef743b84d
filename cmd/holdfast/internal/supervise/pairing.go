//go:build linux || darwin

package supervise

import (
	"sync"
	"syscall"
	"time"
)

// The time for which a signal waits for its pair. The kernel signals a whole group at once. So when a message of the parent
// arrives, the supervisor has received its own signal too, and handles it within moments. The message itself may take longer,
// because the parent has to run first: the host may be busy.
const (
	parentSignalTimeout     = 100 * time.Millisecond
	supervisorSignalTimeout = time.Second
)

// origin is the process that has received a signal.
type origin int

const (
	fromParent origin = iota
	fromSupervisor
)

// pairing distinguishes signals for the parent alone from signals for the whole process group. If parent and supervisor both receive
// a signal in time, it was for the group, so the command has received it too. Otherwise it is forwarded.
//
// Two INT or TERM in place of one make many programs give up their orderly shutdown.
//
// A command that has just started may have missed a signal for the group, which came before it. So a signal that the supervisor
// handles this early is forwarded also if it has a pair. Then the command may receive it twice.
type pairing struct {
	forward func(syscall.Signal)

	mu      sync.Mutex
	waiting []*unpaired // guarded by mu
}

type unpaired struct {
	from  origin
	sig   syscall.Signal
	early bool // the command may have started after the signal
	timer *time.Timer
}

// received takes note of a signal, and calls forward after the timeout if no pair has followed.
func (p *pairing) received(from origin, sig syscall.Signal, early bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, u := range p.waiting {
		if u.sig == sig && u.from != from {
			u.timer.Stop()
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			if early || u.early {
				go p.forward(sig)
			}
			return
		}
	}
	timeout := parentSignalTimeout
	if from == fromSupervisor {
		timeout = supervisorSignalTimeout
	}
	u := &unpaired{from: from, sig: sig, early: early}
	u.timer = time.AfterFunc(timeout, func() { p.expired(u) })
	p.waiting = append(p.waiting, u)
}

// expired forwards a signal whose time has passed, unless its pair came at that moment.
func (p *pairing) expired(u *unpaired) {
	p.mu.Lock()
	for i, other := range p.waiting {
		if other == u {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			p.forward(u.sig)
			return
		}
	}
	p.mu.Unlock()
}
