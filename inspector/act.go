package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

const (
	// mostForm bounds the body of a form, in bytes.
	mostForm = 1 << 20
	// actLimit bounds an action. It continues if its operator leaves.
	actLimit = 10 * readLimit
)

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

// act does an action, if the request may, and answers. It leaves a record of each request.
func (h *Handler) act(w http.ResponseWriter, r *http.Request, a action) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	q := r.URL.Query() // a form would change line breaks in names, an address keeps them
	audit, refused := h.newAudit(a, q)
	audit.Err = h.allow(r, a, &audit, refused)
	if audit.Refused = audit.Err != nil; !audit.Refused {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actLimit)
		defer cancel()
		audit.Err = h.do(ctx, a, &audit, values(r))
	}
	if audit.Pending = errors.Is(audit.Err, errPending); audit.Pending {
		audit.Err = nil
	}
	h.record(r, audit)
	h.answer(w, r, a, audit)
}

// do does an action, if it makes sense for what is there now. The audit gets what was there just before.
func (h *Handler) do(ctx context.Context, a action, audit *Audit, form url.Values) error {
	reading, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	s, err := h.subjectOf(reading, a, form)
	if err != nil {
		return err
	}
	s.who = audit.Who
	s.tell(audit)
	return a.do(ctx, h, s, form)
}

// allow returns why a request may not act, and sets who may. refused is why it names nothing that an action can be done to.
func (h *Handler) allow(r *http.Request, a action, audit *Audit, refused error) error {
	if h.config.authorise == nil {
		return errReadOnly
	}
	if err := h.checkOrigin(r); err != nil {
		return err
	}
	who, err := h.authorise(r)
	if err != nil {
		return errReadOnly
	}
	audit.Who = foreign.Line(who, mostWho)
	if refused != nil {
		return refused
	}
	if digest := h.digestOf(a.Kind, audit.Name); !confirms(r.PostFormValue("confirm"), audit.Name, digest) {
		return fmt.Errorf("%w: type %s to confirm", errTyped, confirmation(audit.Name, digest))
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
		answerJSON(w, audit)
	default:
		h.setDone(w, r, audit, a.Kind)
		seeOther(w, a.Kind.address(audit.Name))
	}
}

// answerJSON says what was done: with 202 what was begun, and continues.
func answerJSON(w http.ResponseWriter, a Audit) {
	if a.Pending {
		writeJSON(w, http.StatusAccepted, map[string]Action{"requested": a.Action})
		return
	}
	writeJSON(w, http.StatusOK, map[string]Action{"done": a.Action})
}
