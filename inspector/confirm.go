package inspector

import (
	"context"
	"net/http"
)

// confirmView asks for the confirmation of an action.
type confirmView struct {
	action
	Name    string
	Digest  string
	Typed   string // what has to be typed: the name or the digest
	Owner   string // of the holder, for ForceUnlockHolder
	Holder  string // its token
	Target  string // the address of the form
	Back    string
	Token   string
	OfHTTP  bool   // a record of an HTTP guard, which can have a response
	Keep    string // prefilled: how long a resolved record is kept
	Warning string // what has to be known before
	Problem string // why the last try was refused
}

// confirm answers with the form of an action. problem is why the last try was refused; nil at the first.
func (h *Handler) confirm(w http.ResponseWriter, r *http.Request, a action, who string, refused error) {
	q := r.URL.Query()
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	s, err := h.subjectOf(ctx, a, q.Get("name"))
	if err != nil {
		if refused != nil {
			err = refused
		}
		h.refuse(w, r, err)
		return
	}
	view := confirmView{
		action: a, Name: q.Get("name"), Owner: q.Get("owner"), Holder: q.Get("holder-token"),
		Target: link(string(a.Action), "name", q.Get("name"), "owner", q.Get("owner"), "holder-token", q.Get("holder-token")),
		Back:   a.Kind.address(q.Get("name")), Token: tokenOf(w, r),
		OfHTTP: s.OfHTTP(), Keep: writtenUp(s.kept()), Warning: s.warning(a),
	}
	view.Digest = h.digestOf(a.Kind, view.Name)
	view.Typed = confirmation(view.Name, view.Digest)
	status := http.StatusOK
	if refused != nil {
		p := problemOf(refused)
		view.Problem, status = p.Title, p.Status
		if p.Detail != "" {
			view.Problem = p.Detail
		}
	}
	writeHTML(w, status, "confirm", shown{Title: a.Title, Template: "confirm", Who: who, Acts: true, Data: view})
}
