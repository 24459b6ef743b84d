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
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// workerEnv makes the test binary a worker process. Its value is an order: "visit", "many", "once", "bid", "follow" or
// a strategy, network and address of the server (for "bid" and "follow", of several), and two numbers.
const workerEnv = "HOLDFAST_TEST_WORKER"

// section is one stay in the critical section, by Redis's clock in microseconds.
type section struct {
	Token int64
	From  int64
	To    int64
}

// work carries out an order and says what it saw, in lines of JSON.
func work(order string) error {
	var what, network, addr string
	var first, second int64
	if _, err := fmt.Sscan(order, &what, &network, &addr, &first, &second); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(v)
	}
	switch what {
	case "follow":
		return followUntilTold(strings.Split(addr, ","), say, int(first), int(second))
	case "bid":
		return bidUntilTold(strings.Split(addr, ","), say, int(first), time.Duration(second))
	}
	rdb := redis.NewClient(&redis.Options{Network: network, Addr: addr})
	defer rdb.Close()
	switch what {
	case "many":
		return holdMany(rdb, say, int(first), time.Duration(second))
	case "once":
		return runOnce(rdb, say, core.FailurePolicy(first), time.Duration(second))
	case "visit":
		return visitOften(rdb, say, int(first), int(second))
	}
	return stayUntilTold(rdb, say, what, int(first), time.Duration(second))
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

// TestTwoProcesses lets two real processes with 8 goroutines each take one name 2,000 times in all. By Redis's
// own clock no two of them may be inside at once, and tokens must grow in that order.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const processes, goroutines, acquisitions = 2, 8, 2000
	order := fmt.Sprint("visit ", server.Network(), " ", server.Addr(), " ", goroutines, " ",
		acquisitions/processes/goroutines)
	results := make(chan []section, processes)
	for range processes {
		go func() {
			var sections []section
			runWorker(t, order, func(line []byte) {
				var s section
				if err := json.Unmarshal(line, &s); err != nil {
					t.Errorf("worker says %q: %v", line, err)
				}
				sections = append(sections, s)
			})
			results <- sections
		}()
	}
	var sections []section
	for range processes {
		sections = append(sections, <-results...)
	}
	if len(sections) != acquisitions {
		t.Errorf("%d acquisitions, want %d", len(sections), acquisitions)
	}
	for _, violation := range violations(sections) {
		t.Error(violation)
	}
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
func startWorker(t *testing.T, order string) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0]), lines: make(chan []byte, 100), ended: make(chan error, 1)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+order)
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
