package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// action is what can be done to a lock, a record or a job.
type action struct {
	Action Action
	Title  string
	Help   string // what happens, for the page that asks for the confirmation
	Kind   object
	do     func(ctx context.Context, h *Handler, name string, form url.Values) error
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
		ForceUnlockHolder, "Force one holder out",
		"Takes the lock from this holder alone. It does not stop it: stop the process first. The holder notices at its next " +
			"renewal, a third of its TTL later at most.",
		objectLock, forceUnlockHolder,
	},
	string(Resolve): {
		Resolve, "Resolve",
		"Records that the work has been done: you have found out that it took effect, or have done it by hand. Nothing runs it " +
			"again while the record is kept. Resolve records of an HTTP guard or of asynqlock by their own functions if clients " +
			"wait for an answer: a value that is given here is not one of theirs.",
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
		objectJob, func(ctx context.Context, h *Handler, name string, _ url.Values) error {
			return cronlock.Pause(ctx, h.locks, name)
		},
	},
	string(Resume): {
		Resume, "Resume", "Lets the job run again from the next tick on. Ticks until now are skipped for ever.",
		objectJob, func(ctx context.Context, h *Handler, name string, _ url.Values) error {
			return cronlock.Resume(ctx, h.locks, name)
		},
	},
	string(RunNow): {
		RunNow, "Run now", "Runs the job at once, in the process that serves this page, even if it is paused.",
		objectJob, runNow,
	},
}

// doneTexts are what a page says after an action.
var doneTexts = map[string]string{
	string(ForceUnlock):       "The lock was taken from its holders.",
	string(ForceUnlockHolder): "The lock was taken from this holder.",
	string(Resolve):           "The record is completed.",
	string(Forget):            "The record was deleted.",
	string(Pause):             "The job is paused.",
	string(Resume):            "The job runs again from the next tick on.",
	string(RunNow):            "The job was run, or still runs: see its runs below.",
}

var (
	errReadOnly = errors.New("this page is read-only")
	errForm     = errors.New("the form is not valid")
	errNotHere  = errors.New("this process has no cron")
	errFree     = fmt.Errorf("%w: the lock is free, or this holder holds it no more", errForm)
)

func forceUnlock(ctx context.Context, h *Handler, name string, _ url.Values) error {
	return forced(h.locks.ForceUnlock(ctx, name))
}

// forced makes an error of a lock that nothing held: an operator has typed its name to free it.
func forced(held bool, err error) error {
	if err == nil && !held {
		return errFree
	}
	return err
}

func forceUnlockHolder(ctx context.Context, h *Handler, name string, form url.Values) error {
	holder, err := holderOf(form)
	if err != nil {
		return err
	}
	return forced(h.locks.ForceUnlockHolder(ctx, name, holder))
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
		return h, fmt.Errorf("%w: token %q is no number", errForm, text)
	}
	return h, nil
}

// defaultRetention is that of core.
const defaultRetention = 24 * time.Hour

func resolve(ctx context.Context, h *Handler, name string, form url.Values) error {
	kept := defaultRetention
	if text := form.Get("keep"); text != "" {
		var err error
		if kept, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%w: keep for %q: a time such as 24h or 90m is wanted", errForm, text)
		}
	}
	var value []byte
	if text := form.Get("value"); text != "" {
		value = []byte(text)
	}
	return h.locks.Once(name, core.WithRetention(kept)).Resolve(ctx, value)
}

func forget(ctx context.Context, h *Handler, name string, _ url.Values) error {
	return h.locks.Once(name).Forget(ctx)
}

// answerLimit is how long a page waits for a job. A run that lasts longer goes on without it.
const answerLimit = 2 * time.Second

func runNow(ctx context.Context, h *Handler, name string, _ url.Values) error {
	if h.config.cron == nil {
		return errNotHere
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(h.lifetime, cancel)
	ended := make(chan error, 1) // has room, so that a run that no request waits for ends too
	err := h.begin(func() {
		defer cancel()
		defer stop()
		ended <- cronlock.RunNow(ctx, h.config.cron, name)
	})
	if err != nil {
		cancel()
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(answerLimit):
		return nil
	}
}
