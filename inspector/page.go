package inspector

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// page is one kind of page.
type page struct {
	template string
	title    string
	read     func(ctx context.Context, h *Handler, q url.Values) (any, error)
	live     bool // open pages are kept up to date
}

// pages are all pages, by the end of their paths. The pages lie side by side, so that relative links work under any path.
var pages = map[string]page{
	"":        {"locks", "Locks", readLocks, true},
	"lock":    {"lock", "Lock", readLock, true},
	"records": {"records", "Records", readRecords, true},
	"record":  {"record", "Record", readRecord, true},
	"cron":    {"cron", "Schedules", readJobs, true},
	"job":     {"job", "Job", readJob, true},
	"process": {"process", "This process", readProcess, true},
	"find":    {"find", "Find", readFind, false},
}

// shown is what a template gets.
type shown struct {
	Title    string
	Template string
	Who      string // the operator; "" if the request may not act
	Acts     bool   // the request may act
	Live     bool
	Done     string // what was just done, one of doneTexts
	JSON     string // the address of the same page as data; "" if there is none
	Data     any
}

// moved is a view that has its own address.
type moved interface{ location() string }

// servePage answers with a page: as HTML, as JSON or as a stream of events.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, p page) {
	if !reads(r) {
		w.Header().Set("Allow", "GET, HEAD")
		h.refuse(w, r, errMethod)
		return
	}
	who, acts := h.operator(r)
	if r.Method == http.MethodGet && wanted(r) == asEvents && p.live {
		h.serveEvents(w, r, p, acts)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	data, err := p.read(ctx, h, r.URL.Query())
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if wanted(r) == asJSON {
		writeJSON(w, http.StatusOK, data)
		return
	}
	if m, ok := data.(moved); ok && m.location() != "" {
		seeOther(w, m.location())
		return
	}
	s := shown{Title: p.title, Template: p.template, Who: who, Acts: acts, Live: p.live && h.config.viewers > 0, Data: data}
	q := r.URL.Query()
	s.Done = doneTexts[q.Get("done")]
	q.Del("done")
	q.Set("format", "json")
	s.JSON = "?" + q.Encode()
	writeHTML(w, http.StatusOK, p.template, s)
}

// operator returns who may act by this request. It returns false if actions are off, or are not allowed to the request.
func (h *Handler) operator(r *http.Request) (who string, ok bool) {
	if h.config.authorise == nil {
		return "", false
	}
	who, err := h.config.authorise(r)
	return who, err == nil
}

// seeOther leads to another page. The address is relative: http.Redirect would resolve it by the path that StripPrefix has left.
func seeOther(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

// millis is a duration as JSON has it.
func millis(d time.Duration) int64 { return d.Milliseconds() }
