package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// obey carries out commands until the input ends.
func (w *worker) obey(ctx context.Context, in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var c Command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintf(os.Stderr, "command %q: %v\n", lines.Text(), err)
			return
		}
		switch c.Do {
		case Calm:
			w.calm.Store(true)
		case Clock:
			_ = os.Setenv(ClockEnv, strconv.FormatInt(int64(c.For), 10))
		case Hog:
			w.hog(ctx, c.For)
		case Burn:
			w.burn(c.For)
		}
	}
}

// hog uses up the pool of each client, as an application does that shares it.
func (w *worker) hog(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	for _, rdb := range w.rdbs {
		for i := range 2 * smallPool {
			w.self.Go(func() {
				for ctx.Err() == nil {
					rdb.BLPop(ctx, d, fmt.Sprint("hog", i))
					sleep(ctx, time.Millisecond)
				}
			})
		}
	}
	w.self.Go(func() { sleep(ctx, d); cancel() })
}

// burn keeps twenty goroutines busy on one processor.
func (w *worker) burn(d time.Duration) {
	runtime.GOMAXPROCS(1)
	end := time.Now().Add(d)
	for range 20 {
		w.self.Go(func() {
			for time.Now().Before(end) {
			}
		})
	}
	w.self.Go(func() {
		time.Sleep(d)
		runtime.GOMAXPROCS(runtime.NumCPU())
	})
}

// leftovers counts the goroutines of core that are still there a while after all was closed.
func leftovers() int {
	n := 0
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if n = len(running()); n == 0 {
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "left behind:\n%s\n", bytes.Join(running(), []byte("\n\n")))
	return n
}

func running() (ours [][]byte) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range bytes.Split(stacks, []byte("\n\n")) {
		if strings.Contains(string(stack), "holdfast/core.") && !strings.Contains(string(stack), "worker.running") {
			ours = append(ours, stack)
		}
	}
	return ours
}
