package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// action is what can be done to a lock, a record or a job.
type action struct {
	Action Action
	Title  string
	Help   string // what happens, for the page that asks for the confirmation
	Kind   object
	do     func(ctx context.Context, h *Handler, s subject, form url.Values) error
}

// actions are all actions, by the ends of their paths.
var actions = map[string]action{
	string(ForceUnlock): {
		ForceUnlock, "Force unlock",
		"Takes the lock from all of its holders. It does not stop them: stop the process first. A holder notices at its next " +
			"renewal, a third of its TTL later at most, and may work beside its successor until then.",
		objectLock, forceUnlock,
	},
	string(ForceUnlockHolder): {
		ForceUnlockHolder, "Force-release one holder",
		"Takes the lock from this holder alone. It does not stop it: stop the process first. The holder notices at its next " +
			"renewal, a third of its TTL later at most.",
		objectLock, forceUnlockHolder,
	},
	string(Resolve): {
		Resolve, "Resolve",
		"Records that the work has been done: you have found out that it took effect, or have done it by hand. Nothing runs it " +
			"again while the record is kept.",
		objectRecord, resolve,
	},
	string(Forget): {
		Forget, "Forget",
		"Deletes the record, so that the work may run again. Do it only if you know that the work had no effect, or that a second " +
			"effect does no harm.",
		objectRecord, forget,
	},
	string(Pause): {
		Pause, "Pause", "Prevents runs on all replicas from the next tick on. A run in progress continues.",
		objectJob, func(ctx context.Context, h *Handler, s subject, _ url.Values) error {
			return cronlock.Job(h.locks, s.name).Pause(ctx, s.who)
		},
	},
	string(Resume): {
		Resume, "Resume", "Lets the job run again from the next tick on. Ticks until now are skipped for ever.",
		objectJob, func(ctx context.Context, h *Handler, s subject, _ url.Values) error {
			return cronlock.Job(h.locks, s.name).Resume(ctx)
		},
	},
	string(RunNow): {
		RunNow, "Run now", "Runs the job at once, in the process that serves this page, even if it is paused.",
		objectJob, runNow,
	},
}

func forceUnlock(ctx context.Context, h *Handler, s subject, form url.Values) error {
	if s.lock.Mode == "" {
		return errFree
	}
	if err := s.checkSeen(form); err != nil {
		return err
	}
	held, err := h.locks.ForceUnlockSeen(ctx, s.lock)
	switch {
	case errors.Is(err, core.ErrInvalidOption):
		return errTooMany
	case err == nil && !held:
		return errFree // an operator has typed its name to free it
	}
	return err
}

func forceUnlockHolder(ctx context.Context, h *Handler, s subject, form url.Values) error {
	if _, err := holderOf(form); err != nil {
		return err
	}
	if len(s.holders) == 0 {
		return errGone
	}
	if err := s.checkSeen(form); err != nil {
		return err
	}
	held, err := h.locks.ForceUnlockHolder(ctx, s.name, s.holders[0])
	if err == nil && !held {
		return errGone
	}
	return err
}

// holderOf reads the holder that a form is about.
func holderOf(form url.Values) (core.Holder, error) {
	h := core.Holder{Owner: form.Get("owner")}
	text := form.Get("holder-token")
	if text == "" {
		return h, nil
	}
	var err error
	if h.Token, err = strconv.ParseInt(text, 10, 64); err != nil {
		return h, fmt.Errorf("%w: token %s is no number", errForm, foreign.Quote(text, mostWho))
	}
	return h, nil
}

func forget(ctx context.Context, h *Handler, s subject, form url.Values) error {
	if err := s.checkSeen(form); err != nil {
		return err
	}
	if form.Get("force") != "" {
		return h.locks.Once(s.name).ForgetRunning(ctx, s.record)
	}
	return h.locks.Once(s.name).Forget(ctx, s.record)
}
