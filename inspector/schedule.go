package inspector

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
)

const (
	// mostJobs and mostRuns bound what a page shows of jobs, and of the runs of one.
	mostJobs = 500
	mostRuns = 100
	// longestJob bounds the name of a job, in bytes: as cronlock does.
	longestJob = 200
)

// jobList are the jobs that replicas have registered.
type jobList struct {
	Jobs  []jobRow `json:"jobs"`
	Total int      `json:"total"` // more than are shown if there are many
	Sort  string   `json:"sort"`
	Form  form     `json:"-"`
}

// jobOrders are the ways to sort jobs.
var jobOrders = []order[jobRow]{
	{"name", "name", nil},
	{"next", "next tick", func(a, b jobRow) int { return earlier(a.NextTick, b.NextTick) }},
	{"missed", "most missed", func(a, b jobRow) int { return -cmp.Compare(a.Missed, b.Missed) }},
	{"last", "latest tick", func(a, b jobRow) int { return earlier(b.LastTick, a.LastTick) }},
	{"paused", "paused first", func(a, b jobRow) int { return -cmp.Compare(flag(a.Paused), flag(b.Paused)) }},
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// jobRow is one job.
type jobRow struct {
	Name       string     `json:"name"`
	Service    string     `json:"service,omitempty"`
	Spec       string     `json:"spec,omitempty"`
	Zone       string     `json:"zone,omitempty"`
	Paused     bool       `json:"paused"`
	PausedBy   string     `json:"paused_by,omitempty"`
	PausedAt   *time.Time `json:"paused_at,omitempty"`
	LastTick   *time.Time `json:"last_tick,omitempty"`
	NextTick   *time.Time `json:"next_tick,omitempty"` // also of a paused job, which does not run then
	Missed     int        `json:"missed"`              // among the ticks that Redis remembers
	MissedTick *time.Time `json:"missed_tick,omitempty"`
	Registered *time.Time `json:"registered,omitempty"`
}

// jobView is one job with its last runs.
type jobView struct {
	jobRow
	Runs  []jobRun `json:"runs"`
	Total int      `json:"total"`
	Here  bool     `json:"-"` // this process may run it
}

// jobRun is one run of a job.
type jobRun struct {
	Tick    *time.Time       `json:"tick,omitempty"`
	Replica string           `json:"replica,omitempty"`
	Service string           `json:"service,omitempty"`
	Attempt int              `json:"attempt"`
	Token   int64            `json:"token,omitempty"`
	Started *time.Time       `json:"started,omitempty"`
	Took    int64            `json:"took_ms"`
	Outcome cronlock.Outcome `json:"outcome"`
}

func readJobs(ctx context.Context, h *Handler, q url.Values) (any, error) {
	jobs, err := cronlock.Jobs(ctx, h.locks)
	if err != nil {
		return nil, err
	}
	list := jobList{Jobs: []jobRow{}, Total: len(jobs)}
	for _, j := range jobs {
		list.Jobs = append(list.Jobs, newJob(j))
	}
	var by selection
	list.Sort, by = sorted(list.Jobs, jobOrders, q)
	list.Form.Selects = []selection{by}
	list.Jobs = list.Jobs[:min(len(list.Jobs), mostJobs)]
	return list, nil
}

func newJob(j cronlock.JobInfo) jobRow {
	return jobRow{
		Name: j.Name, Service: j.Service, Spec: j.Spec, Zone: j.Zone,
		Paused: j.Paused, PausedBy: j.PausedBy, PausedAt: timeOf(j.PausedAt),
		LastTick: timeOf(j.LastTick), NextTick: timeOf(j.NextTick), Missed: j.Missed, MissedTick: timeOf(j.MissedTick),
		Registered: timeOf(j.Registered),
	}
}

// checkJob returns an error for what cannot be the name of a job.
func checkJob(name string) error {
	switch {
	case name == "":
		return errNoName
	case len(name) > longestJob || strings.ContainsAny(name, "{}\x00"):
		return cronlock.ErrUnknownJob
	}
	return nil
}

func readJob(ctx context.Context, h *Handler, q url.Values) (any, error) {
	name := q.Get("name")
	if err := checkJob(name); err != nil {
		return nil, err
	}
	job := cronlock.Job(h.locks, name)
	info, err := job.Info(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := job.History(ctx)
	if err != nil {
		return nil, err
	}
	view := jobView{jobRow: newJob(info), Runs: []jobRun{}, Total: len(runs), Here: h.config.cron != nil}
	for run := range slices.Values(runs[:min(len(runs), mostRuns)]) {
		view.Runs = append(view.Runs, jobRun{
			Tick: timeOf(run.Tick), Replica: run.Replica, Service: run.Service, Attempt: run.Attempt, Token: run.Token,
			Started: timeOf(run.Started), Took: millis(run.Took), Outcome: run.Outcome,
		})
	}
	return view, nil
}
