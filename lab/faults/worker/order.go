package worker

import (
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// Env names the environment variable that holds an [Order], in JSON, and makes a program a worker.
const Env = "HOLDFAST_FAULTS_WORKER"

// ClockEnv names the one by which the wall clock of the process is off, in nanoseconds. It is heeded at every reading,
// by programs that were built for it, see package round.
const ClockEnv = "HOLDFAST_FAULTS_CLOCK"

// Kinds of links.
const (
	Single   = "single"
	Sentinel = "sentinel"
	Cluster  = "cluster"
	Redlock  = "redlock"
)

// Link tells how a worker gets to the servers.
type Link struct {
	Kind  string
	Addrs []string // that clients are told: servers, sentinels, nodes; of a single server and of a Redlock, the relays
	// Relays lead to servers that tell clients their own addresses. What is not in it is reached directly.
	Relays map[string]string
	// Direct is the address at which a single server is reached without a relay, by network and address.
	Direct [2]string
}

// Order is what a worker is to do.
type Order struct {
	ID         string
	Seed       uint64
	Link       Link
	Register   string // path of its socket
	TTL        time.Duration
	ReplicaAck int
	Goroutines int
	Pause      time.Duration // between two locks of a goroutine, at most
	SmallPool  bool
	Replicas   bool // ask replicas where go-redis may
	Limits     *Limits
}

// Limits are n of the only semaphore that is locked, one after the other, each for the same time. Nil for all kinds of locks.
type Limits struct {
	N     []int
	Began int64         // by the clock of the history
	For   time.Duration // all together
}

// now returns n of this moment. The last one stays.
func (l *Limits) now() int {
	phase := int(time.Duration(history.Now()-l.Began) * time.Duration(len(l.N)) / l.For)
	return l.N[min(phase, len(l.N)-1)]
}

// Command is sent to a worker while it works, in a line of JSON. The end of the input ends the work.
type Command struct {
	Do  string        // see below
	For time.Duration // how long; of Clock, by how much
}

// The commands.
const (
	Clock = "clock" // set the wall clock forward by so much, from the true one
	Hog   = "hog"   // use up the connection pool
	Burn  = "burn"  // keep the processor busy
	Calm  = "calm"  // from now on let go of all that is locked
)
