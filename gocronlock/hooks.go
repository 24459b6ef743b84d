package gocronlock

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// reporter reports jobs to the log and the hooks of a client. gocron does not pass the tick for which it starts a job,
// so none of them learns of one.
type reporter struct {
	*guard.Runner
	hooks guard.Hooks
}

func newReporter(facts seal.Facts) reporter {
	return reporter{guard.NewRunner("cron", facts), guard.HooksOf(facts)}
}

// mostShown bounds the names of jobs in errors and in the log, in bytes.
const mostShown = 200

func work(job string) core.Work { return core.Work{Place: "cron", Label: job} }

func (r reporter) incident(ctx context.Context, job string, kind core.IncidentKind, err error) {
	r.Incident(context.WithoutCancel(ctx), core.Incident{Work: work(job), Kind: kind, Err: err})
}

// The reasons for which a job does not run, in the words of package cronlock.
const (
	overlapping = "overlapping" // another run has the lock
	stopped     = "stopped"     // gocron has ended the context of the job
)

func reason(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return stopped
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, core.ErrNotAcquired):
		return overlapping
	case errors.Is(err, core.ErrNotLeader):
		return "not leader"
	}
	return "refused"
}

// run calls the function of a job if and as long as held calls its own, and returns whether it did. The error is the
// error of held, or why gocron had ended the job before.
func (r reporter) run(
	ctx context.Context, job string, fn func(context.Context) error, held func(context.Context, func(context.Context) error) error,
) (began bool, err error) {
	_, refused := r.Do(ctx, guard.Ask{Work: work(job)}, guard.Run{
		Around: func(ctx context.Context, o *guard.Outcome, next func(context.Context)) error {
			err = held(ctx, func(ctx context.Context) error {
				began = true
				o.Token, _ = core.TokenFrom(ctx)
				next(ctx)
				return err
			})
			return err
		},
		Call:   func(ctx context.Context) { err = fn(ctx) },
		Judge:  func(o *guard.Outcome) { o.Err = err },
		Refuse: func(_ context.Context, not *core.NotRun) { not.Reason = reason(ctx, not.Err) },
	})
	if refused != nil {
		return false, refused
	}
	return began, err
}
