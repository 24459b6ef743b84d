package lockdebug

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// Source is a client whose locks are shown: a [core.Client] or a [core.Redlock].
type Source interface {
	Held() []core.Held
	Waiting() []core.Waiting
}

// Handler returns a page with the leases and the waiting calls of these clients, in their order. It answers GET and HEAD, see the
// package. It panics if a source is nil.
func Handler(sources ...Source) http.Handler {
	for _, s := range sources {
		if s == nil {
			panic("lockdebug: a source is nil")
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		report := newReport(sources, time.Now())
		if r.URL.Query().Get("format") == "json" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			text, err := json.Marshal(report)
			if err != nil {
				panic(err) // not with the types of this package
			}
			_, _ = w.Write(append(foreign.JSON(text), '\n')) // an error is that of the connection
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = report.write(w)
	})
}
