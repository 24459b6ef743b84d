// Package preflight looks for settings with which Redis loses locks or refuses them, and warns of them in the log.
//
// It reads INFO, which more users may call than CONFIG: the eviction policy, the role, the version, replicas and the append-only
// file. It asks CONFIG GET only whether a server makes snapshots, and only as the default user of a server that has nothing else.
// A [Check] passes through these states:
//
//	first reply of Redis ── Start ──► inspecting ──┬── every server has answered, or refused INFO ──► finished
//	                                      ▲        └── no answer ──► pause ──┬── for the last time ──► finished
//	                                      └────────────────────────────────┘
//
// Nothing depends on its result: a lock neither waits for it nor fails because of it. So an error is logged at debug level
// only, and a user without the right to INFO gets no warnings.
package preflight
