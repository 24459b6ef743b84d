package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
)

// ErrNoCounter is the error of [Instructions] on a machine without valgrind.
var ErrNoCounter = errors.New("no valgrind in PATH")

// count counts the instructions of each shape, unless the machine has no counter.
func (s *ServerCost) count(ctx context.Context) error {
	for _, of := range shape.Slow() {
		s.logf("server: instructions of %s", of.Name)
		n, err := Instructions(ctx, of)
		if errors.Is(err, ErrNoCounter) {
			s.logf("server: no instructions are counted: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		s.Book.Add(measure.Key{Work: WorkServer, Who: of.Name, Size: 1, Figure: "instructions"}, n)
	}
	return nil
}

// Instructions returns how many instructions a redis-server executes for a lock and unlock of a free name. Unlike time, the number
// is almost the same in each run, whatever else the machine does.
//
// It is the difference of two servers, of which one locks and unlocks more names than the other. So what a server does when it
// starts and ends does not count. The shape should be one of [shape.Slow].
func Instructions(ctx context.Context, of shape.Shape) (float64, error) {
	const few, many = 20 * Batch, 120 * Batch
	less, err := serverInstructions(ctx, of, few)
	if err != nil {
		return 0, err
	}
	more, err := serverInstructions(ctx, of, many)
	return (more - less) / (many - few), err
}

// serverInstructions returns how many instructions a server executes from its start to its end, with that many pairs.
func serverInstructions(ctx context.Context, of shape.Shape, pairs int) (count float64, err error) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return 0, ErrNoCounter
	}
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		return 0, fmt.Errorf("count instructions: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	profile, socket := filepath.Join(dir, "profile"), filepath.Join(dir, "s")
	// Timers of the server would count by its running time.
	server := exec.CommandContext(ctx, valgrind, "--tool=callgrind", "--callgrind-out-file="+profile, "redis-server",
		"--port", "0", "--unixsocket", socket, "--save", "", "--hz", "1", "--dynamic-hz", "no", "--activerehashing", "no")
	if err := server.Start(); err != nil {
		return 0, fmt.Errorf("count instructions: %w", err)
	}
	err = lockAndUnlock(ctx, of, &redis.Options{Network: "unix", Addr: socket, ReadTimeout: time.Minute}, pairs)
	if err != nil {
		_ = server.Process.Kill() // it may wait for more
	}
	if err := errors.Join(err, server.Wait()); err != nil {
		return 0, fmt.Errorf("count instructions: %w", err)
	}
	return readTotal(profile)
}

// lockAndUnlock waits for a server, locks and unlocks that many names, and ends the server.
func lockAndUnlock(ctx context.Context, of shape.Shape, options *redis.Options, pairs int) error {
	for deadline := time.Now().Add(time.Minute); !exists(options.Addr) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	sender, err := connect(ctx, options, of)
	if err != nil {
		return err
	}
	defer func() { _ = sender.rdb.Close() }() // nothing is in flight
	for range pairs / Batch {
		holds, locked, err := sender.lock(ctx, Batch)
		if err != nil {
			return err
		}
		if err := sender.unlock(ctx, holds, locked); err != nil {
			return err
		}
	}
	return sender.rdb.ShutdownNoSave(ctx).Err()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// total is the line with the sum of a profile.
var total = regexp.MustCompile(`(?m)^(?:totals|summary): (\d+)`)

// readTotal returns the sum of a profile of callgrind.
func readTotal(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("count instructions: %w", err)
	}
	found := total.FindStringSubmatch(string(text))
	if found == nil {
		return 0, fmt.Errorf("count instructions: callgrind wrote no sum")
	}
	return strconv.ParseFloat(found[1], 64)
}
