package main

import (
	"flag"
	"fmt"
	"regexp"
	"time"

	"github.com/holdfast-go/holdfast/bench/contestant"
	"github.com/holdfast-go/holdfast/bench/workload"
)

// settings are what the flags say.
type settings struct {
	bench   workload.Bench
	only    *regexp.Regexp // names of workloads
	results string
	from    string
	page    string
	profile profiles
}

// parseFlags returns the settings of a whole run, which takes a quarter of an hour, or of what the flags make of it.
func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "few and short rounds, for development")
	only := flags.String("only", "", "run the workloads whose names this regular expression matches")
	who := flags.String("who", "", "let those contestants take part whose names this regular expression matches")
	flags.StringVar(&s.results, "results", "results/latest.json", "file for the raw results")
	flags.StringVar(&s.from, "from", "", "measure nothing, report the raw results of this file")
	flags.StringVar(&s.page, "page", "", "page into which the tables are written, and beside which the pictures are")
	flags.StringVar(&s.profile.cpu, "cpuprofile", "", "file for a profile of the processors' time")
	flags.StringVar(&s.profile.allocations, "memprofile", "", "file for a profile of all allocations")
	flags.StringVar(&s.profile.trace, "trace", "", "file for an execution trace")
	b := &s.bench
	flags.IntVar(&b.PairRounds, "rounds", 9, "rounds of the pairs, beside one that warms up")
	flags.DurationVar(&b.PairTime, "each", 500*time.Millisecond, "time of a contestant in a round of pairs")
	flags.IntVar(&b.ContestRounds, "contests", 5, "rounds of the contests, beside one that warms up")
	flags.DurationVar(&b.ContestTime, "contest", 2*time.Second, "time of a contest")
	flags.IntVar(&b.Leases, "leases", 100_000, "leases that one client holds")
	flags.DurationVar(&b.LeaseTime, "hold", 5*time.Minute, "for how long they are held")
	flags.IntVar(&b.Waiters, "waiters", 10_000, "waiters of one process")
	flags.IntVar(&b.Readers, "readers", 5000, "readers of one name")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if *quick {
		b.PairRounds, b.PairTime = min(b.PairRounds, 3), min(b.PairTime, 150*time.Millisecond)
		b.ContestRounds, b.ContestTime = min(b.ContestRounds, 1), min(b.ContestTime, 500*time.Millisecond)
		b.Leases, b.LeaseTime = min(b.Leases, 20_000), min(b.LeaseTime, 15*time.Second)
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, fmt.Errorf("-only: %w", err)
	}
	names, err := regexp.Compile(*who)
	if err != nil {
		return s, fmt.Errorf("-who: %w", err)
	}
	for _, c := range contestant.All() {
		if names.MatchString(c.Name) {
			b.Contestants = append(b.Contestants, c)
		}
	}
	return s, nil
}
