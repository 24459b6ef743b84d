package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// lsCommand lists the locks that are held.
type lsCommand struct {
	Prefix string `arg:"" optional:"" name:"begin" names:"locks" help:"List only names that begin so."`
	Sort   string `enum:"name,age,waiters" default:"name" help:"Order: name, age or waiters."`
}

// Run is called by the parser.
func (c *lsCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	entries, err := list(env, all.locks, c.Prefix)
	if err != nil {
		return err
	}
	sortEntries(entries, c.Sort)
	if !env.flags.JSON {
		lockTable(entries, time.Now()).print(env)
	} else {
		for _, e := range entries {
			if err := env.printJSON(entryInJSON(e)); err != nil {
				return err
			}
		}
	}
	all.report(env, len(entries) > 0, nothing("no lock is held", "name", c.Prefix))
	return nil
}

// nothing returns a text about what was not found, with how its names or keys were to begin.
func nothing(text, of, begin string) string {
	if begin == "" {
		return text
	}
	return fmt.Sprintf("%s whose %s begins with %q", text, of, begin)
}

// list returns all locks whose names begin with a prefix, each of them once.
func list(env *environment, locks *core.Client, prefix string) ([]core.Entry, error) {
	found := make(map[string]core.Entry)
	for e, err := range locks.Locks(env.ctx, prefix) {
		if err != nil {
			return nil, err
		}
		found[e.Name] = e
	}
	entries := make([]core.Entry, 0, len(found))
	for _, e := range found {
		entries = append(entries, e)
	}
	return entries, nil
}

// sortEntries sorts by name, or with the oldest or the most awaited lock first.
func sortEntries(entries []core.Entry, order string) {
	slices.SortFunc(entries, func(a, b core.Entry) int {
		byName := cmp.Compare(a.Name, b.Name)
		switch order {
		case "age":
			return cmp.Or(grantedAt(a)-grantedAt(b), byName)
		case "waiters":
			return cmp.Or(waiting(b)-waiting(a), byName)
		}
		return byName
	})
}

// grantedAt returns when the lock was granted, in Unix seconds. A lock of a foreign client counts as the newest.
func grantedAt(e core.Entry) int {
	if len(e.Holders) == 0 || e.Holders[0].Granted.IsZero() {
		return int(^uint(0) >> 1)
	}
	return int(e.Holders[0].Granted.Unix())
}

// waiting returns how many are known to wait: places in the queue, or clients that listen.
func waiting(e core.Entry) int { return max(e.Places, e.Waiters, 0) }

// waitersOf returns how many callers wait. Callers in the queue are counted one by one. Of other callers Redis has only the
// processes, each with one caller or more: "2+". It is "?" if Redis refuses the question.
func waitersOf(e core.Entry) string {
	switch {
	case e.Waiters > 0:
		return strconv.Itoa(waiting(e)) + "+"
	case e.Waiters < 0 && e.Places <= 0, e.Places < 0:
		return "?"
	}
	return strconv.Itoa(e.Places)
}

// lockTable is the table of ls and top, as it was at a time.
func lockTable(entries []core.Entry, now time.Time) *table {
	t := &table{head: []string{"NAME", "MODE", "HELD", "TTL", "WAITERS", "HOLDS", "HOLDER"}}
	for _, e := range entries {
		holder, since := "-", "-"
		if len(e.Holders) > 0 {
			holder, since = cmp.Or(e.Holders[0].Instance, e.Holders[0].Owner), ageAt(e.Holders[0].Granted, now)
		}
		if e.Value != "" {
			holder = e.Value
		}
		t.add(named(e.Name), modeOf(e), since, short(e.TTL), waitersOf(e), strconv.Itoa(e.Holds), holder)
	}
	return t
}

// modeOf returns how a lock is held, and that a client of Redisson holds it.
func modeOf(e core.Entry) string {
	if e.Foreign {
		return "redisson"
	}
	return string(e.Mode)
}
