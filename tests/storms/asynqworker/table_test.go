//go:build unix

package asynqworker_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
)

// table is the resource behind the guards. It makes an effect once for each key hash, as a service with idempotency
// keys does, and refuses tokens that are smaller than one it has seen. What comes without key it does as often as it is
// told.
type table struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	lines   map[net.Conn]bool
	effects map[string]int               // by order
	done    map[string]asynqworker.Entry // by key hash
	fence   map[string]int64             // by key hash
	at      map[string]map[net.Conn]bool // the runs at work, by order
	sealed  map[string]bool              // key hashes with a record that was confirmed
	servers map[string]bool              // that are up
	counts  map[asynqworker.EntryKind]int
	gates   map[string]chan<- *asynqworker.Entry // by server: whose next effect is not answered
	figures figures
	strange []asynqworker.Entry // what should not have been
}

// figures are what the table has counted beside the effects.
type figures struct {
	runs     int // begun
	repeated int // effects that were there already, and were not made again
	stale    int // runs and effects refused because of their token
	overlaps int // runs that began while another one of their order was at work
	late     int // runs that began although the record of an earlier one was confirmed
	recorded int // records that were confirmed
	twice    int // of these, second ones
}

// newTable has its socket in a directory with a short name, as the system demands.
func newTable(t *testing.T) *table {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	tb := &table{
		lines: make(map[net.Conn]bool), effects: make(map[string]int), done: make(map[string]asynqworker.Entry),
		fence: make(map[string]int64), at: make(map[string]map[net.Conn]bool), sealed: make(map[string]bool),
		servers: make(map[string]bool), counts: make(map[asynqworker.EntryKind]int),
		gates: make(map[string]chan<- *asynqworker.Entry),
	}
	if tb.listener, err = net.Listen("unix", filepath.Join(dir, "t")); err != nil {
		t.Fatal(err)
	}
	tb.serving.Go(tb.accept)
	t.Cleanup(func() {
		_ = tb.listener.Close()
		tb.mu.Lock()
		for conn := range tb.lines {
			_ = conn.Close()
		}
		tb.mu.Unlock()
		tb.serving.Wait()
		_ = os.RemoveAll(dir)
	})
	return tb
}

func (tb *table) socket() string { return tb.listener.Addr().String() }

func (tb *table) accept() {
	for {
		conn, err := tb.listener.Accept()
		if err != nil {
			return
		}
		tb.mu.Lock()
		tb.lines[conn] = true
		tb.mu.Unlock()
		tb.serving.Go(func() { tb.serve(conn) })
	}
}

// serve listens to one line until it ends, and with it the run on it.
func (tb *table) serve(conn net.Conn) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var e asynqworker.Entry
		if in.Decode(&e) != nil {
			break
		}
		verdict, answered := tb.take(conn, e)
		if answered && out.Encode(verdict) != nil {
			break
		}
	}
	_ = conn.Close()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	delete(tb.lines, conn)
	for _, runs := range tb.at {
		delete(runs, conn)
	}
}

// take enters what it is told. It tells whether to answer.
func (tb *table) take(conn net.Conn, e asynqworker.Entry) (v asynqworker.Verdict, answered bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.counts[e.Kind]++
	v = asynqworker.Done
	switch e.Kind {
	case asynqworker.Up:
		tb.servers[e.Server] = true
	case asynqworker.Begin:
		v = tb.begin(conn, e)
	case asynqworker.Effect:
		v = tb.effect(conn, e)
		if gate := tb.gates[e.Server]; gate != nil && v == asynqworker.Done {
			delete(tb.gates, e.Server)
			gate <- &e
			return v, false
		}
	case asynqworker.Finished:
		if e.Recorded {
			tb.figures.recorded++
			if tb.sealed[e.KeyHash] {
				tb.figures.twice++
				tb.strange = append(tb.strange, e)
			}
			tb.sealed[e.KeyHash] = true
		}
	case asynqworker.Refused:
		tb.strange = append(tb.strange, e)
	}
	return v, true
}

func (tb *table) begin(conn net.Conn, e asynqworker.Entry) asynqworker.Verdict {
	tb.figures.runs++
	// A run whose process stood still between its grant and this word of it has a smaller token: it began before.
	if tb.sealed[e.KeyHash] && e.KeyHash != "" && e.Token > tb.fence[e.KeyHash] {
		tb.figures.late++
		tb.strange = append(tb.strange, e)
	}
	if tb.at[e.Order] == nil {
		tb.at[e.Order] = make(map[net.Conn]bool)
	}
	if len(tb.at[e.Order]) > 0 {
		tb.figures.overlaps++
	}
	tb.at[e.Order][conn] = true
	return tb.fenced(e)
}

// fenced compares the token with the greatest that was seen for the key.
func (tb *table) fenced(e asynqworker.Entry) asynqworker.Verdict {
	if e.Token < tb.fence[e.KeyHash] {
		tb.figures.stale++
		return asynqworker.Stale
	}
	if e.KeyHash != "" {
		tb.fence[e.KeyHash] = e.Token
	}
	return asynqworker.Done
}

func (tb *table) effect(conn net.Conn, e asynqworker.Entry) asynqworker.Verdict {
	delete(tb.at[e.Order], conn) // it has done what it came for
	if v := tb.fenced(e); v == asynqworker.Stale {
		return v
	}
	if _, made := tb.done[e.KeyHash]; made && e.KeyHash != "" {
		tb.figures.repeated++
		return asynqworker.Repeated
	}
	tb.effects[e.Order]++
	if e.KeyHash != "" {
		tb.done[e.KeyHash] = e
	}
	return asynqworker.Done
}

// withhold makes the next effect of a server, which is told, and never answers.
func (tb *table) withhold(server string) <-chan *asynqworker.Entry {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	told := make(chan *asynqworker.Entry, 1)
	tb.gates[server] = told
	return told
}

// sums returns the effects of all orders, the orders that have one, and those that have more.
func (tb *table) sums() (effects, orders, more int) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, n := range tb.effects {
		effects += n
		orders++
		if n > 1 {
			more++
		}
	}
	return effects, orders, more
}

func (tb *table) isUp(server string) bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.servers[server]
}

// atWork counts the runs that continue.
func (tb *table) atWork() (n int) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, runs := range tb.at {
		n += len(runs)
	}
	return n
}

func (tb *table) count(kind asynqworker.EntryKind) int {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.counts[kind]
}

func (tb *table) seen() (figures, []asynqworker.Entry) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.figures, tb.strange
}
