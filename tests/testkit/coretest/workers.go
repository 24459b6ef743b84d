package coretest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// workerEnv makes the test binary a worker process. Its value is an order: a word of its [work], network and addresses of
// servers, separated by commas, and two numbers. strategyEnv is the strategy of one that stays.
const (
	workerEnv   = "HOLDFAST_TEST_WORKER"
	strategyEnv = "HOLDFAST_TEST_STRATEGY"
)

// Section is one stay in the critical section, by Redis's clock in microseconds.
type Section struct {
	Token int64
	From  int64
	To    int64
}

// Work is what a worker process does, by the first word of its order. It says what it saw in lines of JSON.
type Work map[string]func(o Order, say func(any)) error

// Order is what a worker was told beside its first word.
type Order struct {
	network       string
	Addrs         []string
	First, Second int64
}

// OnServer returns what a worker does with a client of the only server of its order.
func OnServer(do func(rdb *redis.Client, say func(any), first, second int64) error) func(Order, func(any)) error {
	return func(o Order, say func(any)) error {
		rdb := redis.NewClient(&redis.Options{Network: o.network, Addr: o.Addrs[0]})
		defer rdb.Close()
		return do(rdb, say, o.First, o.Second)
	}
}

// Staying is the work of a process that is started by startStaying.
var Staying = Work{"stay": OnServer(func(rdb *redis.Client, say func(any), first, second int64) error {
	return stayUntilTold(rdb, say, os.Getenv(strategyEnv), int(first), time.Duration(second))
})}

// Main runs the tests of a package, or does the work that a process which they started was told.
func Main(m *testing.M, does ...Work) {
	text := os.Getenv(workerEnv)
	if text == "" {
		testkit.VerifyTestMain(m)
		return
	}
	if err := carryOut(text, does); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func carryOut(text string, does []Work) error {
	var what, addrs string
	var o Order
	if _, err := fmt.Sscan(text, &what, &o.network, &addrs, &o.First, &o.Second); err != nil {
		return err
	}
	o.Addrs = strings.Split(addrs, ",")
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(v)
	}
	for _, work := range does {
		if do := work[what]; do != nil {
			return do(o, say)
		}
	}
	return fmt.Errorf("no worker does %q", what)
}

// RunWorker carries out an order in a process of its own and calls heard with every line that it says.
func RunWorker(t *testing.T, order string, heard func(line []byte)) {
	t.Helper()
	w := StartWorker(t, order)
	for line := range w.Lines {
		heard(line)
	}
	if err := <-w.Ended; err != nil {
		t.Errorf("worker: %v", err)
	}
}

// Worker is a process that carries out an order.
type Worker struct {
	Cmd   *exec.Cmd
	Stdin io.Closer
	Lines chan []byte // that it says
	Ended chan error  // holds one element, then
}

// StartWorker starts a process that is killed with the test if it has not ended by then.
func StartWorker(t *testing.T, order string, env ...string) *Worker {
	t.Helper()
	w := &Worker{Cmd: exec.Command(os.Args[0]), Lines: make(chan []byte, 100), Ended: make(chan error, 1)}
	w.Cmd.Env = append(append(os.Environ(), workerEnv+"="+order), env...)
	w.Cmd.Stderr = os.Stderr
	out, err := w.Cmd.StdoutPipe()
	if err == nil {
		w.Stdin, err = w.Cmd.StdinPipe()
	}
	if err == nil {
		err = w.Cmd.Start()
	}
	if err != nil {
		t.Error(err)
		close(w.Lines)
		w.Ended <- nil
		return w
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.Lines <- bytes.Clone(lines.Bytes())
		}
		close(w.Lines)
		w.Ended <- w.Cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = w.Cmd.Process.Kill()
		for range w.Lines { // it must not be stuck with them
		}
		<-done
	})
	return w
}

// PlaceTTL is how long Redis keeps the place of a waiter that gives no sign of life, and what was granted to it.
const PlaceTTL = 5 * time.Second

// Granted is what a worker says when it gets the lock.
type Granted struct {
	Owner string
	Token int64
}

// stayUntilTold takes the lock "name" with some goroutines at once, which unlock when the process's input ends.
func stayUntilTold(rdb *redis.Client, say func(any), strategy string, goroutines int, ttl time.Duration) error {
	locks, err := core.New(rdb, core.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer locks.Close()
	told := make(chan struct{})
	go func() {
		defer close(told)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			lease, err := Strategies(locks)[strategy]("name").Lock(context.Background())
			if err == nil {
				say(Granted{lease.Owner(), lease.Token()})
				<-told
				err = lease.Unlock(context.Background())
			}
			if err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// StartStaying starts a worker that takes the lock with so many goroutines, and keeps it until finish.
func StartStaying(t *testing.T, server *testkit.Server, strategy string, goroutines int, ttl time.Duration) *Worker {
	t.Helper()
	return StartWorker(t, fmt.Sprint("stay ", server.Network(), " ", server.Addr(), " ", goroutines, " ", int64(ttl)),
		strategyEnv+"="+strategy)
}

// Entered returns what the worker says when it gets the lock.
func (w *Worker) Entered(t *testing.T) (g Granted) {
	t.Helper()
	select {
	case line := <-w.Lines:
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatalf("worker says %q: %v", line, err)
		}
	case <-time.After(Within):
		t.Fatalf("waited %v for a worker to get the lock", Within)
	}
	return g
}

// Finish lets the worker unlock.
func (w *Worker) Finish(t *testing.T) {
	t.Helper()
	_ = w.Stdin.Close()
	if err := Receive(t, w.Ended); err != nil {
		t.Errorf("worker: %v", err)
	}
}

// Kill ends the worker without a chance to do anything.
func (w *Worker) Kill(t *testing.T) {
	t.Helper()
	if err := w.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if Receive(t, w.Ended) == nil {
		t.Error("the worker had ended before it was killed")
	}
}
