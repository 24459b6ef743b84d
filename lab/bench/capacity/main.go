// Capacity says what a deployment of holdfast needs: cores and memory of Redis, connections, masters. It multiplies what
// its last measurement has found, see RESULTS.md. Run it in bench:
//
//	GOWORK=off go run ./capacity -locks 50000 -hold 200ms -ttl 30s -processes 100
//
// With -measure ("make -C lab scaling") it measures the costs anew on Redis servers that it starts itself, checks what they predict,
// and writes both into the page and into costs.json, which the next build embeds. With -check it repeats the checks only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	demand  Demand
	measure bool
	check   bool
	costs   string
	page    string
}

func parseFlags(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	d := &s.demand
	flags.StringVar(&d.Strategy, "strategy", "Mutex", "Mutex, Fair, Read or Write")
	flags.Float64Var(&d.Locks, "locks", 1000, "locks a second, each with its unlock, of names that nothing else wants")
	flags.DurationVar(&d.Hold, "hold", 200*time.Millisecond, "for how long each is held")
	flags.DurationVar(&d.TTL, "ttl", ttl, "the TTL of each")
	flags.Float64Var(&d.Once, "once", 0, "runs of Once a second")
	flags.DurationVar(&d.Retention, "retention", 24*time.Hour, "for how long their records are kept")
	flags.Float64Var(&d.Value, "value", 0, "bytes of the value of a record")
	flags.IntVar(&d.Processes, "processes", 10, "client processes")
	flags.Float64Var(&d.Waiting, "waiting", 0, "names that a process waits for, at any time")
	flags.Float64Var(&d.Utilisation, "utilisation", 0.6, "share of its core that a master may use")
	flags.BoolVar(&s.measure, "measure", false, "measure the costs, check them, and write them to -costs")
	flags.BoolVar(&s.check, "check", false, "check the costs of the last measurement anew, and write the result to -costs")
	flags.StringVar(&s.costs, "costs", "capacity/costs.json", "file for the costs")
	flags.StringVar(&s.page, "page", "", "page into which the tables are written")
	return s, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	costs, err := embeddedCosts()
	switch {
	case s.measure:
		costs, err = measureAll(ctx)
	case s.check && err == nil:
		err = costs.checkAnew(ctx)
	}
	if err == nil && (s.measure || s.check) {
		err = costs.save(s.costs)
	}
	if err != nil {
		return err
	}
	if s.page != "" {
		text, err := pageText(costs)
		if err != nil {
			return err
		}
		return report.Write(s.page, map[string]string{pagePart: text}, make(map[string]string))
	}
	plan, err := costs.plan(s.demand)
	if err != nil {
		return err
	}
	fmt.Print(plan.text(s.demand))
	return nil
}
