package inspector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// subject is what an action is done to, as it was just before.
type subject struct {
	name    string
	kind    object
	who     string        // the operator
	lock    core.Info     // of an action on a lock
	holders []core.Holder // of the lock that the action is about
	record  core.Record   // of an action on a record
}

// subjectOf reads what an action would be done to. It returns an error if the action makes no sense there: the form is not
// shown then, and nothing is done. What changes afterwards is found by the action itself.
func (h *Handler) subjectOf(ctx context.Context, a action, form url.Values) (s subject, err error) {
	name := form.Get("name")
	s.name, s.kind = name, a.Kind
	switch a.Kind {
	case objectLock:
		s.lock, err = h.locks.Inspect(ctx, name)
		s.holders = s.lock.Holders
		if one, err := holderOf(form); a.Action == ForceUnlockHolder && err == nil {
			s.holders = slices.DeleteFunc(slices.Clone(s.lock.Holders), func(h core.Holder) bool {
				return h.Owner != one.Owner || one.Token != 0 && h.Token != one.Token
			})
		}
	case objectRecord:
		if s.record, err = h.locks.Once(name).Peek(ctx); err == nil && s.record.State == core.StateNone {
			err = errNoRecord
		}
	case objectJob:
		if a.Action == RunNow && h.config.cron == nil {
			return s, errNotHere
		}
		if err = checkJob(name); err == nil {
			_, err = cronlock.Job(h.locks, name).Paused(ctx)
		}
	}
	return s, err
}

// seen stands for what a form shows and what its action applies to: the state, the attempt and the end of a record, or the holders
// of a lock. The form carries it, so that the action is refused if that has changed.
func (s subject) seen() string {
	switch s.kind {
	case objectRecord:
		return fmt.Sprintf("%s %d %d %d %s", s.record.State, s.record.Attempt, s.record.Token, s.record.Ended.UnixMicro(), s.record.OnExpiry)
	case objectLock:
		sum := sha256.New()
		for _, h := range s.holders {
			fmt.Fprintf(sum, "%q %d\n", h.Owner, h.Token)
		}
		return hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return ""
}

// checkSeen returns an error if the subject is not what the operator has seen in the form.
func (s subject) checkSeen(form url.Values) error {
	switch form.Get("seen") {
	case s.seen():
		return nil
	case "":
		return fmt.Errorf("%w: it does not say what was seen: load the page again", errForm)
	}
	return core.ErrChanged
}

// tell adds the subject of the action to an audit.
func (s subject) tell(audit *Audit) {
	audit.Holders = s.holders
	if len(s.holders) == 1 {
		audit.Owner, audit.Token = s.holders[0].Owner, s.holders[0].Token
	}
	if s.record.Token != 0 {
		audit.Token = s.record.Token
	}
}

// warning returns the warning that an operator sees before the action, or "".
func (s subject) warning(a action) string {
	switch {
	case a.Kind == objectLock && s.lock.Mode == "":
		return "The lock is free now: there is nothing to take."
	case a.Action == ForceUnlockHolder && len(s.holders) == 0:
		return "This holder holds the lock no more: there is nothing to take."
	case a.Action == Forget && s.record.State == core.StateRunning:
		return "An attempt is running. Forget does not stop it, so a second run may begin beside it. Wait for its end, or stop its " +
			"process first. Without the box below, the record of a running attempt is kept."
	case a.Action == Resolve && s.record.State == core.StateRunning:
		return "An attempt is running. Resolve is refused until it has ended."
	case a.Action == Resolve && s.record.State == core.StateCompleted && len(s.record.Value) > 0:
		return "The record is completed and has a result, which Resolve does not change."
	case a.Action == Resolve && s.record.State == core.StateCompleted:
		return "The record is completed already. Resolve can only add the result that later calls get."
	}
	return ""
}

// OfHTTP returns true if the record is one of an HTTP guard.
func (s subject) OfHTTP() bool { return httprecord.IsName(s.name) }

// Encoded returns true if only the guard of the record can record a result.
func (s subject) Encoded() bool { return httprecord.IsEncoded(s.name) }

// kept returns how long a resolved record is kept unless its operator says otherwise: as long as without Resolve, and a day at
// least. A shorter time would let the work run again before clients have stopped retrying.
func (s subject) kept() time.Duration { return max(s.left(), leastRetention) }

// left returns how long a record is kept without Resolve.
func (s subject) left() time.Duration {
	if s.record.Retention < 0 { // Redis would keep it forever
		return mostRetention
	}
	return s.record.Retention
}
