package interop

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// Env makes the test program a worker.
const Env = "HOLDFAST_TEST_INTEROP"

// Work carries out commands until the input ends, and answers on out in the order in which they end.
func Work(in io.Reader, out io.Writer) error {
	w := &worker{out: out, threads: make(map[string]chan Command)}
	defer w.close()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		c, err := ParseCommand(lines.Text())
		if err != nil {
			return err
		}
		if c.Verb == "connect" {
			w.site, err = connect(c)
			w.answer(c, now(), "connected", err)
			continue
		}
		w.thread(c.Thread) <- c
	}
	return lines.Err()
}

type worker struct {
	site *site

	mu  sync.Mutex // guards out
	out io.Writer

	threads map[string]chan Command
	running sync.WaitGroup
}

// thread returns where commands of a caller go, which has leases of its own as a thread in Java has.
func (w *worker) thread(name string) chan<- Command {
	commands, ok := w.threads[name]
	if !ok {
		commands = make(chan Command, 64)
		w.threads[name] = commands
		t := &thread{name: name, site: w.site, leases: make(map[string][]entered)}
		w.running.Go(func() {
			for c := range commands {
				began := now()
				value, err := t.run(c)
				w.answer(c, began, value, err)
			}
		})
	}
	return commands
}

func (w *worker) answer(c Command, began int64, value string, err error) {
	a := Answer{ID: c.ID, Failed: err != nil, Began: began, Ended: now(), Value: value}
	if err != nil {
		a.Value = class(err) + " " + err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintln(w.out, a) // without a reader the input ends soon
}

// close lets go of all that is held and waited for.
func (w *worker) close() {
	for _, commands := range w.threads {
		close(commands)
	}
	if w.site != nil {
		w.site.close()
	}
	w.running.Wait()
}

// now is the machine's clock in microseconds, which the processes of a test share.
func now() int64 { return time.Now().UnixMicro() }
