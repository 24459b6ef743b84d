package asynqworker

import (
	"encoding/json"
	"net"
	"sync"
)

// EntryKind tells what an [Entry] is about.
type EntryKind string

// The kinds.
const (
	Up       EntryKind = "up"
	Begin    EntryKind = "begin"  // of a run
	Effect   EntryKind = "effect" // that a run has, or had if the table accepted it
	Finished EntryKind = "finished"
	Replayed EntryKind = "replayed"
	Deferred EntryKind = "deferred"
	Refused  EntryKind = "refused"
	Failed   EntryKind = "failed" // Redis, behind a run
)

// Entry is something that happened, told to the table.
type Entry struct {
	Kind    EntryKind
	Server  string
	PID     int
	Task    string // queue and ID
	Order   string `json:",omitempty"` // what the task is about
	KeyHash string `json:",omitempty"`
	Token   int64  `json:",omitempty"`
	Attempt int    `json:",omitempty"`
	// Recorded tells that Redis has confirmed that the run took effect, when finished.
	Recorded bool   `json:",omitempty"`
	Reason   string `json:",omitempty"`
}

// Verdict is what the table says of an entry.
type Verdict string

// The verdicts.
const (
	Done     Verdict = "done"
	Repeated Verdict = "repeated" // its effect was there already, and is not made again
	Stale    Verdict = "stale"    // a greater token was seen
)

// Line leads to the table. It ends with its process, so that the table sees which runs have ended.
type Line struct {
	mu   sync.Mutex
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

// Open returns a line to the table at that socket.
func Open(socket string) (*Line, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return &Line{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

// Tell waits for the verdict.
func (l *Line) Tell(e Entry) (v Verdict, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.out.Encode(e); err != nil {
		return "", err
	}
	err = l.in.Decode(&v)
	return v, err
}

// Close hangs up.
func (l *Line) Close() { _ = l.conn.Close() }
