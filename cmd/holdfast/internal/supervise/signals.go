//go:build linux || darwin

package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// forwarded are the signals that reach the command although they were sent to the parent.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// jobSignals stop a process. The supervisor catches them, because it has to renew the lock. It must not ignore them: the
// command would inherit that.
var jobSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// pipeSignal is what the kernel sends with the error of a write to a pipe that no process reads. Parent and supervisor catch it.
// Otherwise the runtime of Go ends them at such a write to standard output or standard error: a message, or a copy of the
// output, would end the command. They must not ignore it: the command would inherit that.
var pipeSignal = []os.Signal{syscall.SIGPIPE}

// ending returns true for the signals that end the wait for the lock. KILL stands for the end of the parent.
func ending(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGKILL:
		return true
	}
	return false
}

// receiveSignals calls received for each of the signals, except those that the caller of holdfast has let it ignore, as
// nohup does with HUP. They stay ignored for the command.
func receiveSignals(signals []os.Signal, received func(syscall.Signal)) {
	incoming := make(chan os.Signal, 64)
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(incoming, sig)
		}
	}
	go func() {
		for sig := range incoming {
			received(sig.(syscall.Signal))
		}
	}()
}

// dieOf ends this process by a signal, as the command did, because a shell ends a script only if the command
// died of INT itself. If the caller has let this process ignore the signal, dieOf returns after a moment.
func dieOf(sig syscall.Signal) {
	signal.Reset(sig)
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(100 * time.Millisecond) // the kernel delivers it to any thread
}
