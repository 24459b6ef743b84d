package gocronlock

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// The reasons for which a job does not run, in the words of package cronlock.
const (
	overlapping = "overlapping" // another run has the lock
	unavailable = "unavailable" // Redis did not answer
	refused     = "refused"     // Redis or this package refused
	stopped     = "stopped"     // gocron has ended the context of the job
	notLeader   = "not leader"  // this replica does not lead
)

// reporter tells the log and the hooks of a client about a job. gocron does not say for which tick it starts a job, so none of
// them learns of one.
type reporter struct {
	job    string
	hooks  guard.Hooks
	logger *slog.Logger
}

func newReporter(job string, facts seal.Facts) reporter {
	return reporter{job, guard.HooksOf(facts), facts.Logger}
}

// mostShown bounds the names of jobs in errors and in the log, in bytes.
const mostShown = 200

// shown returns the name of the job for the log.
func (r reporter) shown() string { return foreign.Line(r.job, mostShown) }

func (r reporter) work() core.Work { return core.Work{Place: "cron", Label: r.job} }

func (r reporter) notRun(ctx context.Context, came time.Time, reason string, err error) {
	r.hooks.NotRun(ctx, core.NotRun{Work: r.work(), Reason: reason, Waited: time.Since(came), Err: err})
}

func (r reporter) incident(ctx context.Context, kind core.IncidentKind, err error) {
	r.hooks.Incident(ctx, core.Incident{Work: r.work(), Kind: kind, Err: err})
}

// run calls the function of a job between RunStart and RunEnd. A panic goes on.
func (r reporter) run(ctx context.Context, fn func(context.Context) error) (err error) {
	token, _ := core.TokenFrom(ctx)
	began, returned := time.Now(), false
	defer func() {
		r.hooks.RunEnd(context.WithoutCancel(ctx), core.RunEnd{
			Work: r.work(), Token: token, Took: time.Since(began), Panicked: !returned, Err: err,
		})
	}()
	ctx = r.hooks.RunStart(ctx, core.RunStart{Work: r.work(), Token: token})
	err = fn(ctx)
	returned = true
	return err
}
