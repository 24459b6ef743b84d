package cronlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// History returns the last runs of a job on all replicas, the latest tick first: those in progress, those that ended, and
// those that were not heard of any more. It knows of twenty periods of the schedule, or what [WithHistory] says.
func History(ctx context.Context, locks *core.Client, name string) ([]Run, error) {
	if locks == nil {
		return nil, errors.New("holdfast: cronlock: the client is nil: pass that of core.New")
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	records, err := locks.Records(ctx, groupOf(name))
	if err != nil {
		return nil, err
	}
	var runs []Run
	for _, r := range records {
		if tick, ok := tickOf(name, r); ok {
			runs = append(runs, runOf(name, tick, r))
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(b.Tick.UnixNano(), a.Tick.UnixNano()) })
	return runs, nil
}

// tickOf reads the tick from the key of a record, false if that is of something else.
func tickOf(name string, r core.Record) (time.Time, bool) {
	if text, ok := strings.CutPrefix(r.Key, groupOf(name)+":at:"); ok {
		tick, err := time.Parse(time.RFC3339Nano, text)
		return tick, err == nil
	}
	return r.Began, strings.HasPrefix(r.Key, groupOf(name)+":now:")
}
