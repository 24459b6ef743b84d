package core

import "github.com/holdfast-go/holdfast/core/internal/script"

// Mode is how a lock is held, or how a call will hold it. The zero value is that of a free lock.
type Mode string

// The modes. A member of a [Multi] has its own.
const (
	ModeMutex     Mode = "mutex"     // by one owner, with [Client.Mutex] or Redisson's RLock
	ModeFair      Mode = "fair"      // by one owner, with [Client.Fair]
	ModeRead      Mode = "read"      // by readers, with [Client.Read] or [Client.FairRead]
	ModeWrite     Mode = "write"     // by a writer, which may also read, with [Client.Write] or [Client.FairWrite]
	ModeSemaphore Mode = "semaphore" // by owners with permits of a [Client.Semaphore], and perhaps by readers
	ModeRedlock   Mode = "redlock"   // by one owner on a majority of servers, with [Redlock.Mutex]
	ModeElection  Mode = "election"  // by the leader of an [Election]
	ModeOnce      Mode = "once"      // no lock: by an attempt of a [Once]; of hooks only in Wait, Renewed and Lost
)

// modeOf returns the mode in which a strategy holds.
func modeOf(s script.Strategy) Mode { return Mode(s.Name()) }
