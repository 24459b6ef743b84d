// Package supervise runs a command while a lock is held, and ends it before the lock can be granted to another holder.
// It does so on Linux and macOS, see [Supported].
//
// # Two processes
//
//	shell or cron ── parent ── supervisor ── command ── its descendants
//	                   │         │
//	                   └── link ─┘   and one shared page: the deadline
//
// The parent is the process that the caller has started. The supervisor is its child: it holds the lock and is the parent of
// the command. There are two so that each ends the command if the other one is killed or stopped.
//
//   - The parent is killed: the link ends, and the supervisor ends the command, then unlocks.
//   - The supervisor is killed: the kernel kills the command (PDEATHSIG), and the parent kills the descendants.
//   - The supervisor is stopped, or hangs: the parent kills it at the deadline, which the supervisor moves with each renewal.
//   - The parent is stopped, as by Ctrl-Z: the supervisor renews the lock, so the command keeps it.
//
// If both are killed at the same moment, the kernel kills the command only. Descendants that the command has forked may
// continue.
//
// If the whole job is stopped, parent included, and then the supervisor is killed, the kernel kills the command, and the parent
// ends the descendants only when it continues. If parent and supervisor are stopped but the command is not, the command
// continues beside the next holder until either of them continues. If all are stopped, or the host sleeps, the command is
// killed some milliseconds after it wakes.
//
// A lease from a queue is short until its first renewal. The command starts after that renewal, with at least two thirds
// of the TTL left, or not at all: see awaitLease.
//
// # Process group
//
// Parent, supervisor and command stay in the process group that the caller has chosen. So the terminal, pipelines and job
// control of the shell work as without holdfast. A signal for the whole group reaches the command directly. A signal for
// the parent alone is forwarded: see pairing.
//
// # Terms
//
//   - descendants: all processes below the supervisor. On Linux the supervisor is a subreaper, so they include daemons.
//   - stop: one reason to end the command, with the times of TERM and of KILL.
//   - margin: how long before the end of the lease KILL is sent, because the kernel needs time to deliver it.
package supervise
