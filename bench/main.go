// Bench measures holdfast beside other lock libraries and beside its own bare scripts, on Redis servers that it starts
// itself. Run it by "make bench" or "make bench-quick" in the repository, or with flags of its own in this directory:
//
//	GOWORK=off go run . -quick -only 'pairs' -who 'Mutex|bare|rueidis'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/holdfast-go/holdfast/bench/contestant"
	"github.com/holdfast-go/holdfast/bench/measure"
	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/bench/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b := &workload.Bench{Book: measure.NewBook(), Log: os.Stderr}
	quick := flag.Bool("quick", false, "few and short rounds, for development")
	only := flag.String("only", "", "run the workloads whose names this regular expression matches")
	who := flag.String("who", "", "let those contestants take part whose names this regular expression matches")
	results := flag.String("results", "results/latest.json", "file for the raw results")
	flag.IntVar(&b.PairRounds, "rounds", 9, "rounds of the pairs, beside one that warms up")
	flag.DurationVar(&b.PairTime, "each", 500*time.Millisecond, "time of a contestant in a round of pairs")
	flag.IntVar(&b.ContestRounds, "contests", 5, "rounds of the contests, beside one that warms up")
	flag.DurationVar(&b.ContestTime, "contest", 2*time.Second, "time of a contest")
	flag.Parse()
	if *quick {
		b.PairRounds, b.PairTime = min(b.PairRounds, 3), min(b.PairTime, 150*time.Millisecond)
		b.ContestRounds, b.ContestTime = min(b.ContestRounds, 1), min(b.ContestTime, 500*time.Millisecond)
	}
	works, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	names, err := regexp.Compile(*who)
	if err != nil {
		return fmt.Errorf("-who: %w", err)
	}
	for _, c := range contestant.All() {
		if names.MatchString(c.Name) {
			b.Contestants = append(b.Contestants, c)
		}
	}
	servers, stop := measure.StartServers(3)
	defer stop()
	b.Servers = servers
	for _, w := range b.Workloads() {
		if !works.MatchString(w.Name) {
			continue
		}
		if err := w.Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	fmt.Println(report.Tables(b.Book, contestant.All()))
	return b.Book.Save(*results)
}
