// Bench measures holdfast beside other lock libraries and beside its own bare scripts, on Redis servers that it starts
// itself. Run it by "make bench" or "make bench-quick" in the repository, or with flags of its own in this directory:
//
//	GOWORK=off go run . -quick -only pairs -who 'Mutex|bare|rueidis'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/holdfast-go/holdfast/bench/contestant"
	"github.com/holdfast-go/holdfast/bench/measure"
	"github.com/holdfast-go/holdfast/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	servers, stop := measure.StartServers(3)
	defer stop()
	machine := fmt.Sprintf("%d cores of %s/%s with %s and Redis %s beside each other", runtime.NumCPU(), runtime.GOOS,
		runtime.GOARCH, runtime.Version(), servers[0].Info("server", "redis_version"))
	s.bench.Servers, s.bench.Log = servers, os.Stderr
	if err := s.measure(ctx); err != nil {
		return err
	}
	book, all := s.bench.Book, contestant.All()
	text := report.Text(book, all, machine)
	fmt.Println(text)
	if s.page == "" {
		return nil
	}
	parts := map[string]string{report.SummaryPart: report.Summary(book, all), report.TextPart: text}
	return report.Write(s.page, parts, map[string]string{
		report.ThroughputFile: report.Throughput(book, all), report.WaitsFile: report.Waits(book, all),
	})
}

// measure runs the workloads, or reads what an earlier run has found.
func (s *settings) measure(ctx context.Context) (err error) {
	if s.from != "" {
		s.bench.Book, err = measure.Open(s.from)
		return err
	}
	s.bench.Book = measure.NewBook()
	stop, err := s.profile.start()
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	for _, w := range s.bench.Workloads() {
		if !s.only.MatchString(w.Name) {
			continue
		}
		if err := w.Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return s.bench.Book.Save(s.results)
}
