// Bench measures holdfast beside other lock libraries and beside its own bare scripts, on Redis servers that it starts
// itself. Run it by "make -C lab bench" or "make -C lab bench-quick" in the repository, or with flags of its own in this directory:
//
//	GOWORK=off go run . -quick -only pairs -who 'Mutex|bare|rueidis'
//
// With -server ("make -C lab bench-server") it measures what the commands of each library cost the server instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/report"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/gitcommit"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
	if s.server {
		return s.serverCost(ctx)
	}
	servers, stop := measure.StartServers(3, testkit.TCP())
	defer stop()
	machine := machine(servers[0])
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
		report.ThroughputFile: report.Throughput(book), report.WaitsFile: report.Waits(book),
	})
}

// machine says what the measurement ran on.
func machine(server *testkit.Server) string {
	return fmt.Sprintf("%d cores of %s/%s with %s and Redis %s beside each other, of the commit %s", runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH, runtime.Version(), server.Info("server", "redis_version"), gitcommit.Head())
}

// serverCost is run with -server.
func (s *settings) serverCost(ctx context.Context) error {
	c := &s.cost
	c.Shapes, c.Log, c.Count = shape.All(), os.Stderr, true
	servers, stop := measure.StartServers(1 + len(c.Shapes))
	defer stop()
	c.Servers = servers
	err := s.read(&c.Book, func() error { return c.Run(ctx) })
	if err != nil {
		return err
	}
	text := report.ServerText(c.Book, c.Shapes, machine(servers[0]))
	fmt.Println(text)
	if s.page == "" {
		return nil
	}
	return report.Write(s.page, map[string]string{report.ServerPart: text}, make(map[string]string))
}

// measure runs the workloads.
func (s *settings) measure(ctx context.Context) error {
	return s.read(&s.bench.Book, func() error {
		for _, w := range s.bench.Workloads() {
			if !s.only.MatchString(w.Name) {
				continue
			}
			if err := w.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
		}
		return nil
	})
}

// read sets the book to what an earlier run has found, or to what run writes into it.
func (s *settings) read(book **measure.Book, run func() error) (err error) {
	if s.from != "" {
		*book, err = measure.Open(s.from)
		return err
	}
	*book = measure.NewBook()
	stop, err := s.profile.start()
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	return (*book).Save(s.results)
}
