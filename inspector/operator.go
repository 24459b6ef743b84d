package inspector

import (
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// operator returns who may act by this request. It returns false if actions are off, or are not allowed to the request.
func (h *Handler) operator(r *http.Request) (who string, ok bool) {
	if h.config.authorise == nil {
		return "", false
	}
	who, err := h.authorise(r)
	return who, err == nil
}

// authorise calls the function of [WithActions]. A panic there is a refusal: otherwise net/http would close the connection of
// each page, and only its own log would say so. The log has no more than the type of the value, which may contain a secret.
// Without a name it is a refusal too: log and [WithAudit] could not say who has acted.
func (h *Handler) authorise(r *http.Request) (who string, err error) {
	defer func() {
		if p := recover(); p != nil {
			seal.FactsOf(h.locks).Logger.Error("holdfast: inspector: the function of WithActions has panicked", "type", fmt.Sprintf("%T", p))
			who, err = "", errReadOnly
		}
	}()
	if who, err = h.config.authorise(r); err == nil && who == "" {
		err = errReadOnly
	}
	return who, err
}
