package inspector

import (
	"context"
	"net/http"
	"time"
)

// Action is what an operator can do from a page.
type Action string

// The actions.
const (
	ForceUnlock       Action = "force-unlock"        // see [core.Client.ForceUnlock]
	ForceUnlockHolder Action = "force-unlock-holder" // see [core.Client.ForceUnlockHolder]
	Resolve           Action = "resolve"             // see [core.Once.Resolve]
	Forget            Action = "forget"              // see [core.Once.Forget]
	Pause             Action = "pause"               // see cronlock.Pause
	Resume            Action = "resume"              // see cronlock.Resume
	RunNow            Action = "run-now"             // see cronlock.RunNow
)

// Audit is one request of an action, for [WithAudit].
type Audit struct {
	// Time is when the request had been handled, by the clock of this process.
	Time time.Time
	// Who is what the function of [WithActions] returned; "" if it refused the request, or was not asked.
	Who string
	// Action is what was asked for.
	Action Action
	// Name of the lock, key of the record or name of the job, as it is.
	Name string
	// Digest stands for Name in the log. It is "" for a job.
	Digest string
	// Owner and Token are those of the holder, for ForceUnlockHolder.
	Owner string
	Token int64
	// Remote is the address that sent the request: that of a proxy, if one is in front.
	Remote string
	// Refused is true if the action was not tried: it was not allowed, forged, or not confirmed.
	Refused bool
	// Pending is true if a job was to be run, and after two seconds had neither returned nor failed: it runs, or the request for
	// its turn waits for Redis. Err is nil then. A failure afterwards is in the log.
	Pending bool
	// Err is why the action was refused or has failed. It is nil if it was done.
	Err error
}

// record leaves a line in the log, without the name, and calls the function of [WithAudit].
func (h *Handler) record(r *http.Request, a Audit) {
	a.Time, a.Remote = time.Now(), r.RemoteAddr
	attrs := []any{"action", string(a.Action), "who", a.Who, "remote", a.Remote}
	if a.Digest != "" {
		attrs = append(attrs, "digest", a.Digest)
	} else {
		attrs = append(attrs, "job", a.Name)
	}
	log := h.locks.Logger()
	switch {
	case a.Refused:
		log.Warn("holdfast: inspector: an action was refused", append(attrs, "reason", problemOf(a.Err).Title)...)
	case a.Err != nil:
		log.Warn("holdfast: inspector: an action has failed", append(attrs, "reason", problemOf(a.Err).Title)...)
	case a.Pending:
		log.Warn("holdfast: inspector: a run was requested", attrs...)
	default:
		log.Warn("holdfast: inspector: an action was done", attrs...)
	}
	if h.config.audit != nil {
		h.config.audit(context.WithoutCancel(r.Context()), a)
	}
}
