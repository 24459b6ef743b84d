package core_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// workerEnv makes the test binary a worker process: its value is "<network> <address> <goroutines> <rounds>".
const workerEnv = "HOLDFAST_TEST_WORKER"

// section is one stay in the critical section, by Redis's clock in microseconds.
type section struct {
	Token int64
	From  int64
	To    int64
}

// work takes one lock again and again and writes what it saw, a JSON line for each section.
func work(order string) error {
	var network, addr string
	var goroutines, rounds int
	if _, err := fmt.Sscan(order, &network, &addr, &goroutines, &rounds); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Network: network, Addr: addr})
	defer rdb.Close()
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
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
				mu.Lock()
				_ = out.Encode(s)
				mu.Unlock()
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
	order := fmt.Sprint(server.Network(), " ", server.Addr(), " ", goroutines, " ",
		acquisitions/processes/goroutines)
	results := make(chan []section, processes)
	for range processes {
		go func() { results <- runWorker(t, order) }()
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

func runWorker(t *testing.T, order string) (sections []section) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+order)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s section
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Errorf("worker says %q: %v", lines.Text(), err)
		}
		sections = append(sections, s)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("worker %d: %v", cmd.Process.Pid, err)
	}
	return sections
}
