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
	params   []string // the parameters that read gets
	live     bool     // open pages are kept up to date
	acts     bool     // the page offers actions to an operator
}

// pages are all pages, by the end of their paths. The pages lie side by side, so that relative links work under any path.
var pages = map[string]page{
	"":        {"locks", "Locks", readLocks, []string{"prefix", "cursor", "limit", "sort"}, true, false},
	"lock":    {"lock", "Lock", readLock, []string{"name"}, true, true},
	"records": {"records", "Records", readRecords, []string{"prefix", "cursor", "limit", "sort", "state"}, true, false},
	"record":  {"record", "Record", readRecord, []string{"name"}, true, true},
	"cron":    {"cron", "Schedules", readJobs, []string{"sort"}, true, false},
	"job":     {"job", "Job", readJob, []string{"name"}, true, true},
	"process": {"process", "This process", readProcess, []string{"sort"}, true, false},
	"find":    {"find", "Find", readFind, []string{"q"}, false, false},
}

// asked returns the parameters that the page reads. Others make no other page, as it is shared among its viewers.
func (p page) asked(q url.Values) url.Values {
	asked := url.Values{}
	for _, name := range p.params {
		if q.Has(name) {
			asked.Set(name, q.Get(name))
		}
	}
	return asked
}

// shown is what a template gets.
type shown struct {
	Title    string
	Template string
	Who      string // the operator; "" if the request may not act
	Acts     bool   // the request may act
	ReadOnly bool   // it may not; both are false where that was not asked
	Live     bool
	Broken   string    // why a page that is kept up to date cannot be shown yet
	Now      time.Time // when it was loaded
	Done     string    // what was just done, one of doneTexts
	JSON     string    // the address of the same page as data; "" if there is none
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
	form := wanted(r)
	var who string
	var acts bool
	if p.acts && form != asJSON { // it may take long
		who, acts = h.operator(r)
	}
	if r.Method == http.MethodGet && form == asEvents && p.live {
		h.serveEvents(w, r, p, acts)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	q := p.asked(r.URL.Query())
	data, err := p.read(ctx, h, q)
	if err != nil {
		h.refusePage(w, r, p, err)
		return
	}
	if form == asJSON {
		writeJSON(w, http.StatusOK, data)
		return
	}
	if m, ok := data.(moved); ok && m.location() != "" {
		seeOther(w, m.location())
		return
	}
	s := shown{Title: p.title, Template: p.template, Who: who, Acts: acts, Live: h.keeps(p), Data: data}
	s.ReadOnly = h.config.authorise == nil || p.acts && !acts
	if r.Method == http.MethodGet {
		s.Done = h.takeDone(w, r, object(p.template), q.Get("name"))
	}
	q.Set("format", "json")
	s.JSON = "?" + q.Encode()
	writeHTML(w, http.StatusOK, p.template, s)
}

// keeps returns true if open pages of a kind are kept up to date.
func (h *Handler) keeps(p page) bool { return p.live && h.config.viewers > 0 }

// seeOther leads to another page. The address is relative: http.Redirect would resolve it by the path that StripPrefix has left.
func seeOther(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

// millis is a duration as JSON has it.
func millis(d time.Duration) int64 { return d.Milliseconds() }
