package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// showCommand shows everything stored in Redis about a name.
type showCommand struct {
	Name string `arg:"" names:"names" help:"Name of a lock or of an election, or the key of a once."`
}

// watchCommand shows a name again and again.
type watchCommand struct {
	Name     string   `arg:"" names:"names" help:"Name of a lock or of an election, or the key of a once."`
	Interval duration `short:"i" default:"1s" placeholder:"TIME" help:"How often to look."`
}

// state is what Redis stores about a name.
type state struct {
	lock   core.Info
	record core.Record
}

// Run is called by the parser.
func (c *showCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	s, err := look(env, all.locks, c.Name)
	if err != nil {
		return err
	}
	if err := s.print(env); err != nil {
		return err
	}
	all.report(env, s.lock.Mode != "" || s.record.State != core.StateNone, "no lock of this name is held, and it has no record")
	return nil
}

// Run is called by the parser. It prints a state only if it has changed.
func (c *watchCommand) Run(env *environment) error {
	if c.Interval.value() < 10*time.Millisecond {
		return usageError("--interval %v: at least 10ms are needed", c.Interval.value())
	}
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	for last, first := "", true; ; {
		s, err := look(env, all.locks, c.Name)
		if err != nil {
			return err
		}
		if now := s.identity(); now != last {
			last = now
			if !env.flags.JSON {
				fmt.Fprintf(env.stdout, "-- %s\n", time.Now().Format(time.RFC3339))
			}
			if err := s.print(env); err != nil {
				return err
			}
			if first {
				all.report(env, true, "")
				first = false
			}
		}
		select {
		case <-time.After(c.Interval.value()):
		case <-env.ctx.Done():
			return nil
		}
	}
}

// look reads the lock and the record of a name.
func look(env *environment, locks *core.Client, name string) (s state, err error) {
	if s.lock, err = locks.Inspect(env.ctx, name); err != nil {
		return s, err
	}
	s.record, err = locks.Once(name).Peek(env.ctx)
	return s, err
}

// identity is the same for states that differ only in the time that is left.
func (s state) identity() string {
	text := fmt.Sprint(s.lock.Mode, s.lock.Shares, s.lock.Waiters, s.lock.Places, s.lock.Value, s.record.State, s.record.Attempt, s.record.Token)
	for _, h := range s.lock.Holders {
		text += fmt.Sprint(" ", h.Owner, h.Token, h.Holds)
	}
	return text
}

func (s state) print(env *environment) error {
	if env.flags.JSON {
		return env.printJSON(s.inJSON())
	}
	mode := string(s.lock.Mode)
	if mode == "" {
		mode = "free"
	}
	kind := "lock    "
	if s.lock.Mode == core.ModeElection {
		kind, mode = "election", "led"
	}
	fmt.Fprintf(env.stdout, "%s %s, %s\n", kind, named(s.lock.Name), mode)
	if s.lock.Mode != "" {
		fmt.Fprintf(env.stdout, "ttl      %s, unless it is renewed\nwaiters  %d in the queue, %d clients listen for a release\n",
			short(s.lock.TTL), s.lock.Places, max(s.lock.Waiters, 0))
	}
	if s.lock.Value != "" {
		fmt.Fprintf(env.stdout, "leader   %s\n", printable(s.lock.Value))
	}
	if len(s.lock.Holders) > 0 {
		holderTable(s.lock.Holders).print(env)
	}
	if len(s.lock.Queue) > 0 {
		waiterTable(s.lock.Queue).print(env)
	}
	if s.record.State != core.StateNone {
		printRecord(env, s.record)
	}
	return env.stdout.failed
}

func (s state) inJSON() jsonLock {
	l := jsonLock{
		Name: s.lock.Name, Mode: string(s.lock.Mode), Held: max(s.lock.Shares, len(s.lock.Holders)), TTL: s.lock.TTL.Milliseconds(),
		Waiters: s.lock.Waiters, Queued: s.lock.Places, Value: s.lock.Value, Holders: holdersInJSON(s.lock.Holders),
	}
	for _, w := range s.lock.Queue {
		l.Queue = append(l.Queue, jsonWaiter{w.Owner, w.Instance, string(w.Mode), w.Permits})
	}
	if s.record.State != core.StateNone {
		l.Record = recordInJSON(s.record, len(s.record.Value))
	}
	return l
}

// holderTable is the table of show and unlock.
func holderTable(holders []core.Holder) *table {
	t := &table{head: []string{"HOLDER", "OWNER", "TOKEN", "HELD", "TTL", "PERMITS"}}
	for _, h := range holders {
		permits := "-"
		if h.Permits > 0 {
			permits = fmt.Sprintf("%d of %d", h.Permits, h.Limit)
		}
		t.add(cmp.Or(h.Instance, "-"), h.Owner, strconv.FormatInt(h.Token, 10), age(h.Granted), short(h.TTL), permits)
	}
	return t
}

// mostWaiters is how many waiters show prints. JSON has all that Inspect returns.
const mostWaiters = 20

// waiterTable is the table of the queue in show.
func waiterTable(queue []core.Waiter) *table {
	t := &table{head: []string{"WAITER", "OWNER", "MODE", "PERMITS"}}
	for _, w := range queue[:min(len(queue), mostWaiters)] {
		permits := "-"
		if w.Permits > 0 {
			permits = fmt.Sprintf("%d of %d", w.Permits, w.Limit)
		}
		t.add(cmp.Or(w.Instance, "-"), w.Owner, string(w.Mode), permits)
	}
	return t
}
