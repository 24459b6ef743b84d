package inspector

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// problem is an error as operators see it.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Help   string `json:"help,omitempty"`
	// Detail is the text of the error. It is only shown if it concerns what the operator has asked for.
	Detail string `json:"detail,omitempty"`
}

// problems are the known errors, in the order in which they are looked for.
var problems = []struct {
	err         error
	status      int
	title, help string
	detail      bool
}{
	{errNoPage, 404, "There is no such page", "", false},
	{errHost, 421, "The page is not served under this name", "The service names its hosts by inspector.WithHosts.", false},
	{errMethod, 405, "This method is not allowed here", "Pages are read by GET, and actions are sent by POST.", false},
	{errReadOnly, 403, "This page is read-only", "The service allows no actions here, or none to you.", false},
	{errForged, 403, "The request does not come from this page", "Go back, load the page again, and allow its cookie.", false},
	{errBusy, 503, "Another search is running", "Only one digest is looked for at a time. Try again in some seconds.", false},
	{errForm, 400, "The form cannot be read", "", true},
	{errTyped, 400, "The typed name is wrong", "", true},
	{errNoName, 400, "No name is given", "Begin at the list, or look up a name above.", false},
	{errFree, 409, "The lock is free already", "Nothing was changed.", false},
	{errGone, 409, "This holder holds the lock no more", "Nothing was changed.", false},
	{errTooMany, 409, "The lock has too many holders to take it from all at once", "Force-release them one by one, or call ForceUnlock.", false},
	{core.ErrChanged, 409, "It has changed since you saw it", "Nothing was changed. Look at it as it is now, and decide anew.", false},
	{errNoRecord, 404, "There is no record of this key", "Nothing was changed. It may have expired, or was forgotten.", false},
	{errShorter, 409, "The record would be kept for a shorter time", "", true},
	{errNotHere, 409, "This process cannot run jobs", "Give inspector.WithCron the cron that has the job.", false},
	{core.ErrPermission, 502, "Redis refuses the user of this service", "A right is missing, or the password is wrong. The lists " +
		"need the right to SCAN, and lists of records also need HSTRLEN: see docs/keys-and-rights.md. Without it, look up a name above.", true},
	{core.ErrMisconfigured, 502, "The Redis client of this service does not fit its Redis", "The log of this service says what to " +
		"correct: the kind of client, the address, TLS or the commands of the server.", true},
	{core.ErrClosed, 503, "The client of this service is closed", "The service shuts down.", false},
	{core.ErrUnavailable, 503, "Redis does not answer", unreachableHelp, true},
	{context.DeadlineExceeded, 503, "Redis does not answer", unreachableHelp, false},
	{context.Canceled, 503, "The request has ended", "", false},
	{core.ErrInvalidName, 400, "This is no name of a lock", "", true},
	{core.ErrInvalidOption, 400, "The address of this page is not valid", "Begin at the first page again.", true},
	{core.ErrWrongType, 409, "The key holds other data", "It is no lock or record of holdfast. Nothing was changed.", true},
	{core.ErrInProgress, 409, "An attempt is running", "It was not touched. Wait for its end, or stop its process.", false},
	{core.ErrCompleted, 409, "The record is completed already", "It was not changed.", false},
	{cronlock.ErrUnknownJob, 404, "No replica has registered this job", "", false},
	{cronlock.ErrOverlap, 409, "An earlier run of the job is in progress", "", false},
}

const unreachableHelp = "What this process holds is still shown: see This process. Locks are lost once their time is over."

// problemOf returns how an error is shown.
func problemOf(err error) problem {
	for _, known := range problems {
		if errors.Is(err, known.err) {
			p := problem{Status: known.status, Title: known.title, Help: known.help}
			if known.detail {
				p.Detail = foreign.Line(err.Error(), mostVisible)
			}
			return p
		}
	}
	return problem{Status: http.StatusInternalServerError, Title: "This did not work", Detail: foreign.Line(err.Error(), mostVisible)}
}

// refuse answers with an error, in the form that the request wants.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	h.refusePage(w, r, page{}, err)
}

// refusePage answers with the error of reading a page. A page in the browser comes back by itself after an outage.
func (h *Handler) refusePage(w http.ResponseWriter, r *http.Request, of page, err error) {
	p := problemOf(err)
	if wanted(r) != asHTML {
		writeJSON(w, p.Status, p)
		return
	}
	s := shown{Title: p.Title, Template: "problem", Data: p}
	if s.Live = p.Status == http.StatusServiceUnavailable && h.keeps(of); s.Live {
		s.Broken = p.Title
	}
	writeHTML(w, p.Status, "problem", s)
}
