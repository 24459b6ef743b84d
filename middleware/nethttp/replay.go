package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware"
)

// replay answers with a recorded response, which must be replayable. The field named marker says so.
func replay(w http.ResponseWriter, r *middleware.Response, marker string) {
	r.Replay(w.Header(), marker)
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		_, _ = w.Write(r.Body) // nobody is left to tell of a client that does not read its answer
	}
}
