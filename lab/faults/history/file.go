package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Log writes events as lines of JSON. Its methods may be called from several goroutines at once.
type Log struct {
	mu   sync.Mutex
	out  io.Writer
	by   string
	fail error
}

// NewLog writes the events of whoever is called by that name to out, each with one call of Write: what is written is
// out of the process, also if that is killed next.
func NewLog(out io.Writer, by string) *Log { return &Log{out: out, by: by} }

// Say writes an event, and puts in the time if it has none.
func (l *Log) Say(e Event) {
	if e.At == 0 {
		e.At = Now()
	}
	e.Wall = Wall()
	if e.By == "" {
		e.By = l.by
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // it consists of plain fields
	}
	l.Copy(line)
}

// Copy writes a line that was written elsewhere.
func (l *Log) Copy(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out.Write(append(line, '\n')); err != nil && l.fail == nil {
		l.fail = err
	}
}

// Err returns the first error of writing.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail
}

// maxLine bounds a line, which a killed process may have left unfinished.
const maxLine = 1 << 20

// Read returns the events of a history in the order of their times.
func Read(in io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.At - b.At) })
	return events, lines.Err()
}

// ReadFile reads the history in a file.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}
