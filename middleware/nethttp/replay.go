package httplock

import (
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// replay answers with a recorded response, which must be replayable. A header field says so.
func replay(w http.ResponseWriter, r *httpguard.Response) { httpguard.Send(r, w) }
