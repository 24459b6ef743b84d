package gocronlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// workerEnv makes the test binary a worker process. Its value is an order: "elect" or "lock", and network and address of the
// server.
const workerEnv = "HOLDFAST_GOCRON_WORKER"

// stay is one run of the job, by Redis's clock in microseconds.
type stay struct {
	Token, From, To int64
}

// work runs a scheduler until its input ends, and says each run in a line of JSON.
func work(order string) error {
	var what, network, addr string
	if _, err := fmt.Sscan(order, &what, &network, &addr); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Network: network, Addr: addr})
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithTTL(time.Second), core.WithLogger(nil))
	if err != nil {
		return err
	}
	defer locks.Close()
	out := json.NewEncoder(os.Stdout) // one run at a time writes, in one process too
	job := func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx)
		from := rdb.Time(ctx).Val().UnixMicro()
		time.Sleep(3 * time.Millisecond) // others come meanwhile
		to, err := rdb.Time(ctx).Result()
		if err != nil || ctx.Err() != nil {
			return err
		}
		return out.Encode(stay{token, from, to.UnixMicro()})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	option := gocron.SchedulerOption(nil)
	if what == "elect" {
		elector := gocronlock.Elector(locks.Election("scheduler"))
		go func() { _ = elector.Lead(ctx) }()
		job, option = elector.Func(job), gocron.WithDistributedElector(elector)
	} else {
		locker := gocronlock.Locker(locks.Mutex, core.WithMinHold(0))
		job, option = locker.Func(job), gocron.WithDistributedLocker(locker)
	}
	s, err := gocron.NewScheduler(option)
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(job), gocron.WithName("job"),
		gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return err
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Shutdown()
}

// run is a stay of a worker.
type run struct {
	stay
	worker int
}

// startWorker starts a process whose runs arrive on runs, and returns what kills it.
func startWorker(t testing.TB, server *testkit.Server, what string, number int, runs chan<- run) (kill func()) {
	t.Helper()
	options := server.Client().Options()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", workerEnv, what, options.Network, options.Addr))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var s stay
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				runs <- run{s, number}
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("worker %d does not end", number)
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	return func() { _ = cmd.Process.Kill(); <-ended }
}
