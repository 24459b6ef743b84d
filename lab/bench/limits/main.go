// Limits measures the semaphores and elections of holdfast beside what its users have otherwise, under the same load and
// the same faults, on Redis servers that it starts itself. Run it by "make -C lab limits-bench" in the repository, or in bench:
//
//	GOWORK=off go run ./limits -quick
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	oldredis "github.com/go-redis/redis/v8"
	"github.com/redis/go-redis/v9/logging"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// The faults make both versions of go-redis complain about connections.
	logging.Disable()
	oldredis.SetLogger(silent{})
	logx.DisableStat() // of go-zero, which the package of the reports imports
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// settings are what the flags say, and what was measured.
type settings struct {
	rounds       int           // of the load, beside one that warms up
	alone        time.Duration // of a contestant in a round, with one caller
	contest      time.Duration // the same with many callers
	plays        int           // times that each fault is injected
	resignations int
	crashes      int
	idle         time.Duration
	leadTTL      time.Duration

	results, page string

	book     *measure.Book
	outcomes outcomes
	log      io.Writer
}

func parseFlags(args []string) (*settings, error) {
	var s settings
	flags := flag.NewFlagSet("limits", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "few and short rounds, for development")
	flags.IntVar(&s.rounds, "rounds", 7, "rounds of the load, beside one that warms up")
	flags.DurationVar(&s.alone, "alone", 500*time.Millisecond, "time of a semaphore in a round, with one caller")
	flags.DurationVar(&s.contest, "contest", 2*time.Second, "time of a semaphore in a round, with many callers")
	flags.IntVar(&s.plays, "plays", 3, "times that each fault is injected")
	flags.IntVar(&s.resignations, "resignations", 50, "leaders that resign")
	flags.IntVar(&s.crashes, "crashes", 15, "leaders that crash")
	flags.DurationVar(&s.idle, "idle", 10*time.Second, "time in which commands of idle candidates are counted")
	flags.DurationVar(&s.leadTTL, "lead-ttl", time.Second, "TTL of leaders")
	flags.StringVar(&s.results, "results", "results/limits.json", "file for the raw figures")
	flags.StringVar(&s.page, "page", "", "page into which the tables are written")
	err := flags.Parse(args)
	if *quick {
		s.rounds, s.plays = min(s.rounds, 2), 1
		s.alone, s.contest = min(s.alone, 200*time.Millisecond), min(s.contest, 500*time.Millisecond)
		s.resignations, s.crashes = min(s.resignations, 10), min(s.crashes, 3)
		s.idle = min(s.idle, 3*time.Second)
	}
	s.book = measure.NewBook()
	return &s, err
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	s.log = log
	began := time.Now()
	for _, step := range []func(context.Context) error{s.load, s.elections, s.faults} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := s.book.Save(s.results); err != nil {
		return err
	}
	text := s.text(time.Since(began))
	fmt.Fprintln(out, text)
	if s.page == "" {
		return nil
	}
	return report.Write(s.page, map[string]string{pagePart: text}, make(map[string]string))
}

func (s *settings) logf(format string, args ...any) { fmt.Fprintf(s.log, format+"\n", args...) }
