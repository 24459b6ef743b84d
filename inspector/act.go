package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

const (
	// mostForm bounds the body of a form, in bytes.
	mostForm = 1 << 20
	// actLimit bounds an action. It goes on if its operator leaves.
	actLimit = 10 * readLimit
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
	Problem string // why the last try was refused
}

// serveAction answers GET with a form, and does the action by POST.
func (h *Handler) serveAction(w http.ResponseWriter, r *http.Request, a action) {
	switch {
	case reads(r):
		who, acts := h.operator(r)
		if !acts {
			h.refuse(w, r, errReadOnly)
			return
		}
		h.confirm(w, r, a, who, nil)
	case r.Method == http.MethodPost:
		h.act(w, r, a)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		h.refuse(w, r, errMethod)
	}
}

// confirm answers with the form of an action. problem is why the last try was refused; nil at the first.
func (h *Handler) confirm(w http.ResponseWriter, r *http.Request, a action, who string, refused error) {
	q := r.URL.Query()
	view := confirmView{
		action: a, Name: q.Get("name"), Owner: q.Get("owner"), Holder: q.Get("holder-token"),
		Target: link(string(a.Action), "name", q.Get("name"), "owner", q.Get("owner"), "holder-token", q.Get("holder-token")),
		Back:   a.Kind.address(q.Get("name")), Token: tokenOf(w, r),
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

// act does an action, if the request may, and answers. It leaves a record of each request.
func (h *Handler) act(w http.ResponseWriter, r *http.Request, a action) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	q := r.URL.Query() // a form would change line breaks in names, an address keeps them
	audit := Audit{Action: a.Action, Name: q.Get("name"), Owner: q.Get("owner"), Digest: h.digestOf(a.Kind, q.Get("name"))}
	if holder, err := holderOf(q); err == nil {
		audit.Token = holder.Token
	}
	audit.Err = h.allow(r, a, &audit)
	if audit.Refused = audit.Err != nil; !audit.Refused {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actLimit)
		defer cancel()
		audit.Err = a.do(ctx, h, audit.Name, values(r))
	}
	h.record(r, audit)
	h.answer(w, r, a, audit)
}

// allow returns why a request may not act, and sets who may.
func (h *Handler) allow(r *http.Request, a action, audit *Audit) error {
	if h.config.authorise == nil {
		return errReadOnly
	}
	if err := h.checkOrigin(r); err != nil {
		return err
	}
	who, err := h.config.authorise(r)
	if err != nil {
		return errReadOnly
	}
	audit.Who = who
	if want := confirmation(audit.Name, audit.Digest); r.PostFormValue("confirm") != want {
		return fmt.Errorf("%w: type %s to confirm", errForm, want)
	}
	return nil
}

// values returns the fields of a form, with the parameters of its address.
func values(r *http.Request) url.Values {
	all := url.Values{}
	for name, v := range r.PostForm {
		all[name] = v
	}
	for name, v := range r.URL.Query() { // they win
		all[name] = v
	}
	return all
}

// answer leads back to the page of what was acted upon, or says why nothing was done.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, a action, audit Audit) {
	switch {
	case errors.Is(audit.Err, errReadOnly), errors.Is(audit.Err, errForged), audit.Err != nil && wanted(r) != asHTML:
		h.refuse(w, r, audit.Err)
	case audit.Err != nil:
		h.confirm(w, r, a, audit.Who, audit.Err) // to be corrected
	case wanted(r) == asJSON:
		writeJSON(w, http.StatusOK, struct {
			Done Action `json:"done"`
		}{a.Action})
	default:
		seeOther(w, a.Kind.address(audit.Name, "done", string(a.Action)))
	}
}
