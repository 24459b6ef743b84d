package lockdebug

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Source is a client whose locks are shown: a [core.Client] or a [core.Redlock].
type Source interface {
	Held() []core.Held
	Waiting() []core.Waiting
}

// Report is what the page shows.
type Report struct {
	// At is the time of the report, by the clock of the process.
	At time.Time `json:"at"`
	// Held are the leases of all sources, in the order of the sources.
	Held []core.Held `json:"held"`
	// Waiting are the calls of all sources that wait, in the order of the sources.
	Waiting []core.Waiting `json:"waiting"`
}

// Handler returns a page with the leases and the waiting calls of these clients. It answers GET and HEAD: as plain text, or as
// the JSON of a [Report] with ?format=json. It panics if a source is nil.
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
		report := collect(sources)
		if r.FormValue("format") == "json" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_ = json.NewEncoder(w).Encode(report) // an error is that of the connection
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = report.write(w)
	})
}

// collect makes a report of all sources. Its lists are never nil, so that JSON has empty lists.
func collect(sources []Source) Report {
	report := Report{At: time.Now(), Held: []core.Held{}, Waiting: []core.Waiting{}}
	for _, s := range sources {
		report.Held = append(report.Held, s.Held()...)
		report.Waiting = append(report.Waiting, s.Waiting()...)
	}
	return report
}
