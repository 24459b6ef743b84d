package supervise

import "syscall"

// StatusLost is the exit status if the command was ended because the lock was lost, or was about to be.
const StatusLost = 79

// signalStatus is added to the number of a signal, as shells do.
const signalStatus = 128

// SignalStatus returns the exit status for a signal: 128 and its number.
func SignalStatus(sig syscall.Signal) int { return signalStatus + int(sig) }

// ExitStatus returns the exit status of the command as a shell has it: 128 and the number of the signal of which it
// died, if it did.
func (o Outcome) ExitStatus() int {
	switch {
	case o.Stopped != "":
		return StatusLost
	case o.status.Signaled():
		return SignalStatus(o.status.Signal())
	}
	return o.status.ExitStatus()
}
