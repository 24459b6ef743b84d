package cronlock

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// History returns the last runs of a job on all replicas, the latest tick first: runs in progress, runs that ended,
// and runs whose process crashed. It covers twenty periods of the schedule, or what [WithHistory] says. It returns
// [ErrUnknownJob] for a name that no replica has. A job that has not run yet has an empty history.
func History(ctx context.Context, locks *core.Client, name string) ([]Run, error) {
	if locks == nil {
		return nil, errNoClient
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	records, err := locks.Records(ctx, groupOf(name))
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, checkKnown(ctx, locks, name)
	}
	var runs []Run
	for _, r := range records {
		tick, ok := tickOf(name, r.Key)
		if !ok && strings.HasPrefix(r.Key, nowKey(name, "")) {
			tick, ok = r.Began, true
		}
		if ok {
			runs = append(runs, runOf(name, tick, r))
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Tick.Compare(a.Tick) })
	return runs, nil
}
