package inspector

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// mostHeld bounds how many leases, and how many waiting calls, a page shows.
const mostHeld = 500

// processView is what this process holds and waits for. It comes from memory, so it is there while Redis is not.
type processView struct {
	AllHeld    int          `json:"all_held"` // more than are shown if there are many
	AllWaiting int          `json:"all_waiting"`
	Held       []heldRow    `json:"held"`
	Waiting    []waitingRow `json:"waiting"`
}

// heldRow is one valid lease.
type heldRow struct {
	Name    string     `json:"name"`
	Mode    core.Mode  `json:"mode"`
	Owner   string     `json:"owner"`
	Token   int64      `json:"token"`
	Permits int        `json:"permits,omitempty"`
	Since   *time.Time `json:"since"`
	Valid   countdown  `json:"valid"`
	Renewed bool       `json:"renewed"`
}

// waitingRow is one call that waits.
type waitingRow struct {
	Name     string     `json:"name"`
	Mode     core.Mode  `json:"mode"`
	Owner    string     `json:"owner"`
	Since    *time.Time `json:"since"`
	Position int        `json:"position"` // 0 if unknown
	InRedis  bool       `json:"in_redis"`
}

func readProcess(_ context.Context, h *Handler, _ url.Values) (any, error) {
	held, waiting := h.locks.Held(), h.locks.Waiting()
	view := processView{
		AllHeld: len(held), AllWaiting: len(waiting), Held: []heldRow{}, Waiting: []waitingRow{},
	}
	for _, l := range held[:min(len(held), mostHeld)] {
		view.Held = append(view.Held, heldRow{
			Name: l.Name, Mode: l.Mode, Owner: l.Owner, Token: l.Token, Permits: l.Permits,
			Since: timeOf(l.Since), Valid: newCountdown(max(time.Until(l.ValidUntil), 0), l.TTL), Renewed: l.Renewed,
		})
	}
	for _, w := range waiting[:min(len(waiting), mostHeld)] {
		view.Waiting = append(view.Waiting, waitingRow{
			Name: w.Name, Mode: w.Mode, Owner: w.Owner, Since: timeOf(w.Since), Position: w.Position, InRedis: w.InRedis,
		})
	}
	return view, nil
}
