package inspector

import "errors"

// Errors with which the page refuses a request, or reports a failed action. Their texts are in the table of problems.
var (
	errNoPage   = errors.New("there is no such page")
	errHost     = errors.New("the page is not served under this name")
	errMethod   = errors.New("this method is not allowed here")
	errReadOnly = errors.New("this page is read-only")
	errForm     = errors.New("the form is not valid")
	errTyped    = errors.New("the typed name is wrong")
	errNoName   = errors.New("no name is given")
	errFree     = errors.New("the lock is free")
	errGone     = errors.New("this holder holds the lock no more")
	errTooMany  = errors.New("the lock has more holders than can be compared")
	errNoRecord = errors.New("there is no record of this key")
	errShorter  = errors.New("the record must not be kept for a shorter time")
	errNotHere  = errors.New("this process has no cron")
	// errPending says that a run has neither ended nor failed in time. It is no failure.
	errPending = errors.New("the run has not ended yet")
)
