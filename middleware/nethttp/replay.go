package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// replay answers with a recorded response, which must be replayable. A header field says so.
func replay(w http.ResponseWriter, r *httpguard.Response) {
	httpguard.Replay(r, w.Header())
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		_, _ = w.Write(r.Body) // nobody is left to tell of a client that does not read its answer
	}
}
