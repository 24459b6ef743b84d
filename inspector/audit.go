package inspector

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Action is what an operator can do from a page.
type Action string

// The actions.
const (
	ForceUnlock       Action = "force-unlock"        // see [core.Client.ForceUnlock]
	ForceUnlockHolder Action = "force-unlock-holder" // see [core.Client.ForceUnlockHolder]
	Resolve           Action = "resolve"             // see [core.Once.Resolve]
	Forget            Action = "forget"              // see [core.Once.Forget]
	Pause             Action = "pause"               // see [cronlock.JobHandle.Pause]
	Resume            Action = "resume"              // see [cronlock.JobHandle.Resume]
	RunNow            Action = "run-now"             // see [cronlock.JobHandle.Run]
)

// Audit is one request of an action, for [WithAudit].
type Audit struct {
	// Time is when the request had been handled, by the clock of this process.
	Time time.Time
	// Who is what the function of [WithActions] returned, on one line and without what cannot be seen; "" if it refused the request, or
	// was not asked.
	Who string
	// Action is what was asked for.
	Action Action
	// Name of the lock, key of the record or name of the job, as it is: it may have line breaks, so quote it, or log the Audit as a
	// whole. It is "" if nothing can have the name that was asked for.
	Name string
	// Digest stands for Name in the log. It is "" for a job, unless no job can have the name.
	Digest string
	// Owner and Token identify the holder that ForceUnlockHolder is about, or the only one for ForceUnlock. Token is the token of
	// the last attempt for Resolve and Forget.
	Owner string
	Token int64
	// Holders are those that ForceUnlock or ForceUnlockHolder took the lock from, as they were just before. They are nil for other
	// actions, and if the action was refused.
	Holders []core.Holder
	// Remote is the address that sent the request: the address of a proxy, if one is in front.
	Remote string
	// Refused is true if the action was not tried: it was not allowed, forged, or not confirmed.
	Refused bool
	// Pending is true if a job was to be run, and after two seconds had neither returned nor failed: it runs, or the request for
	// its turn waits for Redis. Err is nil then. A failure afterwards is in the log.
	Pending bool
	// Err is why the action was refused or has failed. It is nil if it was done.
	Err error
}

// mostWho bounds what the log and an audit have of an operator or an address, in bytes.
const mostWho = 200

// newAudit returns what a request says that it is about, and why nothing can be that. Anybody may send a request, so what was not
// checked does not come into the audit: a refused name is a digest there, and an owner that no holder has is left out.
func (h *Handler) newAudit(a action, q url.Values) (audit Audit, refused error) {
	audit = Audit{Action: a.Action, Name: q.Get("name")}
	switch {
	case audit.Name == "":
		refused = errNoName
	case a.Kind == objectJob:
		refused = checkJob(audit.Name)
	default:
		refused = h.locks.Mutex(audit.Name).Check() // the names of locks and keys of records have the same rules
	}
	if a.Kind != objectJob || refused != nil {
		audit.Digest = h.digestOf(a.Kind, audit.Name)
	}
	if refused != nil {
		audit.Name = ""
	}
	if holder, err := holderOf(q); err == nil {
		audit.Token = holder.Token
		if len(holder.Owner) <= longestOwner && plain(holder.Owner) {
			audit.Owner = holder.Owner
		}
	}
	return audit, refused
}

// longestOwner bounds an owner, in bytes: the bound of [core.WithOwner], and the suffix of a writer of Redisson.
const longestOwner = 140

// LogValue returns the audit as log/slog logs it. Each text is on one line, so it is safe in a log of any format.
func (a Audit) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Time("time", a.Time), slog.String("who", a.Who), slog.String("action", string(a.Action)), slog.String("name", visible(a.Name)),
		slog.String("digest", a.Digest), slog.String("owner", visible(a.Owner)), slog.Int64("token", a.Token),
		slog.String("remote", foreign.Line(a.Remote, mostWho)), slog.Bool("refused", a.Refused), slog.Bool("pending", a.Pending),
	}
	for i, holder := range a.Holders {
		attrs = append(attrs, slog.Group("holder"+strconv.Itoa(i+1), slog.String("owner", visible(holder.Owner)),
			slog.String("instance", visible(holder.Instance)), slog.Int64("token", holder.Token)))
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", foreign.Line(a.Err.Error(), mostVisible)))
	}
	return slog.GroupValue(attrs...)
}

// generatedOwner matches the owners that clients make up: the UUID of the client and a number. Redisson adds a suffix for a writer.
var generatedOwner = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+(:write)?$`)

// holders returns what the log says of the token and of the holders. An owner that WithOwner has named is left out, since it works
// like a password.
func (a Audit) holders() (attrs []any) {
	if a.Token != 0 {
		attrs = append(attrs, "token", a.Token)
	}
	if generatedOwner.MatchString(a.Owner) {
		attrs = append(attrs, "owner", a.Owner)
	}
	switch len(a.Holders) {
	case 0:
	case 1:
		attrs = append(attrs, "instance", a.Holders[0].Instance)
	default:
		attrs = append(attrs, "holders", len(a.Holders))
	}
	return attrs
}

// record leaves a line in the log, without the name, and calls the function of [WithAudit].
func (h *Handler) record(r *http.Request, a Audit) {
	a.Time, a.Remote = time.Now(), foreign.Line(r.RemoteAddr, mostWho) // middleware may set it from a header
	attrs := []any{"action", string(a.Action), "who", a.Who, "remote", a.Remote}
	if a.Digest != "" {
		attrs = append(attrs, "digest", a.Digest)
	} else {
		attrs = append(attrs, "job", visible(a.Name))
	}
	attrs = append(attrs, a.holders()...)
	log := seal.FactsOf(h.locks).Logger
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
