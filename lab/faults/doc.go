// Package faults holds what proves holdfast under faults: real worker processes, real Redis servers with a relay on
// every link, a nemesis that breaks both by a seed, and checkers that read nothing but the history.
//
//   - history: what happened, as lines of JSON by one clock
//   - worker: a process that locks, works and writes, and tells of every call
//   - register: the resource behind the locks, which refuses old tokens
//   - topology: the servers, and the links from the workers to them
//   - nemesis: the faults, each with its row of the catalogue
//   - check: what must be true of a history
//   - linear: the same history, judged a second time by models of a lock, a semaphore, an election and the register
//   - recheck: the command that judges a history again, by both
//   - round: all of it together, for one topology and one seed at a time
//
// Beside it, lab/simulate does the same in virtual time, for volume, and lab/mutants puts bugs into the library, which
// have to be found. It needs Linux and a redis-server.
package faults
