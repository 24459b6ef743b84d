package main

import (
	"flag"
	"fmt"
	"regexp"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// settings are what the flags say.
type settings struct {
	bench   workload.Bench
	server  bool // what the commands cost the server, instead of the workloads
	cost    workload.ServerCost
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
	flags.BoolVar(&s.server, "server", false, "measure what the commands cost the server, and nothing else")
	flags.StringVar(&s.results, "results", "", "file for the raw results: results/latest.json or results/server.json")
	flags.StringVar(&s.from, "from", "", "measure nothing, report the raw results of this file")
	flags.StringVar(&s.page, "page", "", "page into which the tables are written, and beside which the pictures are")
	flags.StringVar(&s.profile.cpu, "cpuprofile", "", "file for a profile of the processors' time")
	flags.StringVar(&s.profile.allocations, "memprofile", "", "file for a profile of all allocations")
	flags.StringVar(&s.profile.trace, "trace", "", "file for an execution trace")
	b := &s.bench
	flags.IntVar(&b.PairRounds, "rounds", 9, "rounds of the pairs, beside one that warms up")
	flags.DurationVar(&b.PairTime, "each", 500*time.Millisecond, "time of a contestant in a round of pairs")
	flags.IntVar(&b.LoneRounds, "lone-rounds", 180, "rounds of the pairs of one goroutine, beside one that warms up")
	flags.DurationVar(&b.LoneTime, "lone", 50*time.Millisecond, "time of a contestant in such a round")
	flags.IntVar(&b.ContestRounds, "contests", 5, "rounds of the contests, beside one that warms up")
	flags.DurationVar(&b.ContestTime, "contest", 2*time.Second, "time of a contest")
	flags.IntVar(&b.Leases, "leases", 100_000, "leases that one client holds")
	flags.DurationVar(&b.LeaseTime, "hold", 5*time.Minute, "for how long they are held")
	flags.IntVar(&b.Waiters, "waiters", 10_000, "waiters of one process")
	flags.IntVar(&b.Readers, "readers", 5000, "readers of one name")
	c := &s.cost
	serverFlags(flags, c)
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.results == "" {
		s.results = map[bool]string{false: "results/latest.json", true: "results/server.json"}[s.server]
	}
	if *quick {
		b.LoneRounds, b.LoneTime = min(b.LoneRounds, 100), min(b.LoneTime, 10*time.Millisecond)
		c.Rounds, c.Left, c.Later = min(c.Rounds, 20), min(c.Left, 10_000), min(c.Later, 20*time.Second)
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

// serverFlags are the flags of a server started by -server.
func serverFlags(flags *flag.FlagSet, c *workload.ServerCost) {
	flags.IntVar(&c.Rounds, "server-rounds", 100, "rounds of -server, beside one that warms up")
	flags.IntVar(&c.Pairs, "server-pairs", 1000, "pairs of a shape in such a round")
	flags.IntVar(&c.Left, "left", 100_000, "pairs of a shape before its server's memory is measured")
	flags.DurationVar(&c.Later, "later", time.Minute, "time after which it is measured again")
}
