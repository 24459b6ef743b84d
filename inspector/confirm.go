package inspector

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// confirmView asks for the confirmation of an action.
type confirmView struct {
	action
	Name    string
	Digest  string
	Typed   string      // what has to be typed: the end of the name or the digest
	Lock    *lockView   // of an action on a lock, with the holders that it is about
	Record  *recordView // of an action on a record
	Target  string      // the address of the form
	Back    string
	Token   string
	Seen    string // what the action applies to
	OfHTTP  bool   // a record of an HTTP guard, which can have a response
	Encoded bool   // a record whose result only its guard can record
	Keep    string // prefilled: how long a resolved record is kept
	Warning string // what has to be known before
	Problem string // why the last try was refused
}

// confirm answers with the form of an action. problem is why the last try was refused; nil at the first.
func (h *Handler) confirm(w http.ResponseWriter, r *http.Request, a action, who string, refused error) {
	q := r.URL.Query()
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	s, err := h.subjectOf(ctx, a, q)
	if err != nil {
		if refused != nil {
			err = refused
		}
		h.refuse(w, r, err)
		return
	}
	view := confirmView{
		action: a, Name: q.Get("name"),
		Target: link(string(a.Action), "name", q.Get("name"), "owner", q.Get("owner"), "holder-token", q.Get("holder-token")),
		Back:   a.Kind.address(q.Get("name")), Token: h.tokenOf(w, r),
		Seen: s.seen(), OfHTTP: s.OfHTTP(), Encoded: s.Encoded(), Keep: writtenUp(s.kept()), Warning: s.warning(a),
	}
	view.Digest = h.digestOf(a.Kind, view.Name)
	view.Typed = confirmation(view.Name, view.Digest)
	switch a.Kind {
	case objectLock:
		lock := h.newLock(s.name, s.lock)
		lock.Holders = h.newHolders(s.holders)
		view.Lock = &lock
	case objectRecord:
		record := h.newRecord(s.record, len(s.record.Value))
		view.Record = &record
	}
	status := http.StatusOK
	if refused != nil {
		p := problemOf(refused)
		view.Problem, status = p.Title, p.Status
		if p.Detail != "" {
			view.Problem = p.Detail
		} else if errors.Is(refused, core.ErrChanged) {
			view.Problem += ". " + p.Help
		}
	}
	writeHTML(w, status, "confirm", shown{Title: a.Title, Template: "confirm", Who: who, Acts: true, Data: view})
}
