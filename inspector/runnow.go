package inspector

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// answerLimit is how long a page waits for a job. A run that lasts longer continues without it.
const answerLimit = 2 * time.Second

// runNow runs a job. It returns [errPending] if the run has not ended in time: then it may still ask Redis for its turn.
func runNow(ctx context.Context, h *Handler, s subject, _ url.Values) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(h.lifetime, cancel)
	ended, left := make(chan error), make(chan struct{})
	err := h.begin(func() {
		defer cancel()
		defer stop()
		err := cronlock.Job(h.locks, s.name).Run(ctx, h.config.cron)
		select {
		case ended <- err:
		case <-left: // the operator has seen that the outcome is still open
			h.logLate(s.name, err)
		}
	})
	if err != nil {
		stop()
		cancel()
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(answerLimit):
		close(left)
		return errPending
	}
}

// logLate logs how a run ended that no request waits for any more.
func (h *Handler) logLate(job string, err error) {
	if err != nil {
		seal.FactsOf(h.locks).Logger.Warn("holdfast: inspector: a requested run has failed", "action", string(RunNow), "job", job,
			"reason", problemOf(err).Title)
	}
}
