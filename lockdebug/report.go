package lockdebug

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// report is what the page shows, with the names of its JSON.
type report struct {
	At      time.Time `json:"at"`
	Held    []held    `json:"held"`
	Waiting []waiting `json:"waiting"`
}

type held struct {
	Name       string    `json:"name"`
	Mode       core.Mode `json:"mode"`
	Owner      string    `json:"owner"`
	Token      int64     `json:"token"`
	Permits    int       `json:"permits,omitempty"`
	Since      time.Time `json:"since"`
	ValidUntil time.Time `json:"valid_until"`
	TTL        int64     `json:"ttl_ms"`
	Renewed    bool      `json:"renewed"`
}

type waiting struct {
	Name     string    `json:"name"`
	Mode     core.Mode `json:"mode"`
	Owner    string    `json:"owner"`
	Since    time.Time `json:"since"`
	Position int       `json:"position"`
	InRedis  bool      `json:"in_redis"`
}

// newReport asks all sources. The lists are never nil, so that JSON has empty lists.
func newReport(sources []Source, now time.Time) report {
	r := report{At: now.UTC(), Held: []held{}, Waiting: []waiting{}}
	for _, s := range sources {
		for _, h := range s.Held() {
			r.Held = append(r.Held, held{
				h.Name, h.Mode, h.Owner, h.Token, h.Permits, h.Since.UTC(), h.ValidUntil.UTC(), h.TTL.Milliseconds(), h.Renewed,
			})
		}
		for _, w := range s.Waiting() {
			r.Waiting = append(r.Waiting, waiting{w.Name, w.Mode, w.Owner, w.Since.UTC(), w.Position, w.InRedis})
		}
	}
	return r
}
