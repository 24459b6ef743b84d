package core_test

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

// section is one stay in the critical section, by Redis's clock in microseconds.
type section struct {
	Token int64
	From  int64
	To    int64
}

// work is what a worker process does, by the first word of its order. It says what it saw in lines of JSON.
type work map[string]func(o order, say func(any)) error

// order is what a worker was told beside its first word.
type order struct {
	network       string
	addrs         []string
	first, second int64
}

// onServer returns what a worker does with a client of the only server of its order.
func onServer(do func(rdb *redis.Client, say func(any), first, second int64) error) func(order, func(any)) error {
	return func(o order, say func(any)) error {
		rdb := redis.NewClient(&redis.Options{Network: o.network, Addr: o.addrs[0]})
		defer rdb.Close()
		return do(rdb, say, o.first, o.second)
	}
}

// staying is the work of a process that is started by startStaying.
var staying = work{"stay": onServer(func(rdb *redis.Client, say func(any), first, second int64) error {
	return stayUntilTold(rdb, say, os.Getenv(strategyEnv), int(first), time.Duration(second))
})}

// runTests runs the tests of a package, or does the work that a process which they started was told.
func runTests(m *testing.M, does ...work) {
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

func carryOut(text string, does []work) error {
	var what, addrs string
	var o order
	if _, err := fmt.Sscan(text, &what, &o.network, &addrs, &o.first, &o.second); err != nil {
		return err
	}
	o.addrs = strings.Split(addrs, ",")
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

// visitOften takes one lock again and again, with several goroutines.
func visitOften(rdb *redis.Client, say func(any), goroutines, rounds int) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			for range rounds {
				s, err := visit(locks, rdb)
				if err != nil {
					failed <- err
					return
				}
				say(s)
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

func visit(locks *core.Client, rdb *redis.Client) (section, error) {
	ctx := context.Background()
	lease, err := locks.Mutex("name").Lock(ctx)
	if err != nil {
		return section{}, err
	}
	from, err := rdb.Time(ctx).Result()
	if err != nil {
		return section{}, err
	}
	to, err := rdb.Time(ctx).Result()
	if err != nil {
		return section{}, err
	}
	return section{lease.Token(), from.UnixMicro(), to.UnixMicro()}, lease.Unlock(ctx)
}

// runWorker carries out an order in a process of its own and calls heard with every line that it says.
func runWorker(t *testing.T, order string, heard func(line []byte)) {
	t.Helper()
	w := startWorker(t, order)
	for line := range w.lines {
		heard(line)
	}
	if err := <-w.ended; err != nil {
		t.Errorf("worker: %v", err)
	}
}

// worker is a process that carries out an order.
type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan []byte // that it says
	ended chan error  // holds one element, then
}

// startWorker starts a process that is killed with the test if it has not ended by then.
func startWorker(t *testing.T, order string, env ...string) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0]), lines: make(chan []byte, 100), ended: make(chan error, 1)}
	w.cmd.Env = append(append(os.Environ(), workerEnv+"="+order), env...)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.stdin, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Error(err)
		close(w.lines)
		w.ended <- nil
		return w
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.lines <- bytes.Clone(lines.Bytes())
		}
		close(w.lines)
		w.ended <- w.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		for range w.lines { // it must not be stuck with them
		}
		<-done
	})
	return w
}

// placeTTL is how long Redis keeps the place of a waiter that gives no sign of life, and what was granted to it.
const placeTTL = 5 * time.Second

// granted is what a worker says when it gets the lock.
type granted struct {
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
			lease, err := strategies(locks)[strategy]("name").Lock(context.Background())
			if err == nil {
				say(granted{lease.Owner(), lease.Token()})
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

// startStaying starts a worker that takes the lock with so many goroutines, and keeps it until finish.
func startStaying(t *testing.T, server *testkit.Server, strategy string, goroutines int, ttl time.Duration) *worker {
	t.Helper()
	return startWorker(t, fmt.Sprint("stay ", server.Network(), " ", server.Addr(), " ", goroutines, " ", int64(ttl)),
		strategyEnv+"="+strategy)
}

// entered returns what the worker says when it gets the lock.
func (w *worker) entered(t *testing.T) (g granted) {
	t.Helper()
	select {
	case line := <-w.lines:
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatalf("worker says %q: %v", line, err)
		}
	case <-time.After(within):
		t.Fatalf("waited %v for a worker to get the lock", within)
	}
	return g
}

// finish lets the worker unlock.
func (w *worker) finish(t *testing.T) {
	t.Helper()
	_ = w.stdin.Close()
	if err := receive(t, w.ended); err != nil {
		t.Errorf("worker: %v", err)
	}
}

// kill ends the worker without a chance to do anything.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if receive(t, w.ended) == nil {
		t.Error("the worker had ended before it was killed")
	}
}
