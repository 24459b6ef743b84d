package lockdebug

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/hosts"
)

// Source is a client whose locks are shown: a [core.Client] or a [core.Redlock].
type Source interface {
	Held() []core.Held
	Waiting() []core.Waiting
}

// Handler returns a page with the leases and the waiting calls of a client, and of the clients of [WithSources]. It answers GET and
// HEAD, see the package. It panics if a source or an option is nil, or an option is invalid.
func Handler(source Source, opts ...Option) http.Handler {
	c := config{sources: []Source{source}}
	for _, o := range opts {
		if o == nil {
			panic("lockdebug: an option is nil")
		}
		o.apply(&c)
	}
	if slices.Contains(c.sources, nil) {
		panic("lockdebug: a source is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if !hosts.Serves(c.hosts, r) {
			http.Error(w, "this page is not served for that host", http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
			return
		}
		report := newReport(c.sources, time.Now())
		if r.URL.Query().Get("format") == "json" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			text, err := json.Marshal(report)
			if err != nil {
				panic(err) // not with the types of this package
			}
			_, _ = w.Write(append(foreign.JSON(text), '\n')) // an error means that the connection has failed
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = report.write(w)
	})
}
