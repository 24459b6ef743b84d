// Package supervise runs a command while a lock is held, and ends it before the lock can be granted to another holder.
// It does so on Linux and macOS, see [Supported].
//
// # Two processes
//
//	shell or cron ── front ── keeper ── command ── its descendants
//	                   │         │
//	                   └── link ─┘   and one shared page: the deadline
//
// The front is the process that the caller has started. The keeper is its child: it holds the lock and is the parent of
// the command. Why two: each of them ends the command if the other one is killed or stopped.
//
//   - The front is killed: the link ends, and the keeper ends the command, then unlocks.
//   - The keeper is killed: the kernel kills the command (PDEATHSIG), and the front kills the descendants.
//   - The keeper is stopped, or hangs: the front kills it at the deadline, which the keeper moves with each renewal.
//   - The front is stopped, as by Ctrl-Z: the keeper renews the lock, so the command keeps it.
//
// If both are killed at the same moment, the kernel kills the command only. Descendants that the command has forked may
// continue.
//
// If the whole job is stopped, front included, and then the keeper is killed, the kernel kills the command, and the front
// ends the descendants only when it continues. If front and keeper are stopped but the command is not, the command
// continues beside the next holder until either of them continues. If all are stopped, or the host sleeps, the command is
// killed some milliseconds after it wakes.
//
// A lease from a queue is short until its first renewal. The command starts after that renewal, with at least two thirds
// of the TTL left, or not at all: see awaitLease.
//
// # Process group
//
// Front, keeper and command stay in the process group that the caller has chosen. So the terminal, pipelines and job
// control of the shell work as without holdfast. A signal for the whole group reaches the command directly. A signal for
// the front alone is forwarded: see pairing.
//
// # Terms
//
//   - descendants: all processes below the keeper. On Linux the keeper is a subreaper, so they include daemons.
//   - stop: one reason to end the command, with the times of TERM and of KILL.
//   - margin: how long before the end of the lease KILL is sent, because the kernel needs time to deliver it.
package supervise
