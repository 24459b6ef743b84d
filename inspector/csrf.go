package inspector

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
)

// errForged refuses a request that another site may have made a browser send.
var errForged = errors.New("the request does not come from this page")

// tokenCookie carries the token that a form has to repeat. The server keeps nothing, so any replica may take the form.
//
// Both this and the check of the origin are needed: the check trusts requests of old browsers and of programs, which
// send no origin. The token alone could be set by another host of the same domain, whose requests the check refuses. A
// secret of this process would sign the token against that, but then only the replica that has made the form could take
// it.
const tokenCookie = "holdfast-inspector"

// tokenOf returns the token of a browser, and gives it one if it has none.
func (h *Handler) tokenOf(w http.ResponseWriter, r *http.Request) string {
	if token := h.cookie(r, tokenCookie); token != "" {
		return token
	}
	token := rand.Text()
	http.SetCookie(w, h.newCookie(r, tokenCookie, token, 0))
	return token
}

// checkOrigin returns [errForged] for a form that does not come from a page of this handler.
func (h *Handler) checkOrigin(r *http.Request) error {
	if h.crossOrigin.Check(r) != nil {
		return errForged
	}
	token := h.cookie(r, tokenCookie)
	if token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(r.PostFormValue("token"))) != 1 {
		return errForged
	}
	return nil
}
