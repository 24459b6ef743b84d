package inspector

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// mostHeld bounds how many leases, and how many waiting calls, a page shows.
const mostHeld = 500

// probeLimit bounds how long the page waits for an answer of Redis, which only says whether it answers.
const probeLimit = time.Second

// processView is what this process holds and waits for. It comes from memory, so it is there while Redis is unreachable.
type processView struct {
	AllHeld    int          `json:"all_held"` // more than are shown if there are many
	AllWaiting int          `json:"all_waiting"`
	Held       []heldRow    `json:"held"`
	Waiting    []waitingRow `json:"waiting"`
	Outage     string       `json:"outage,omitempty"` // why Redis does not answer
	Sort       string       `json:"sort"`
	Form       form         `json:"-"`
}

// heldOrders and waitingOrders are the ways to sort what this process holds and waits for. Their keys are the same.
var (
	heldOrders = []order[heldRow]{
		{"name", "name", nil},
		{"since", "longest first", func(a, b heldRow) int { return earlier(a.Since, b.Since) }},
		{"left", "least time left", func(a, b heldRow) int { return sooner(a.Valid, b.Valid) }},
	}
	waitingOrders = []order[waitingRow]{
		{"name", "", nil},
		{"since", "", func(a, b waitingRow) int { return earlier(a.Since, b.Since) }},
	}
)

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

func readProcess(ctx context.Context, h *Handler, q url.Values) (any, error) {
	probe, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, unreachable := h.locks.Inspect(probe, "holdfast:inspector") // a free lock: any answer will do
	held, waiting := h.locks.Held(), h.locks.Waiting()
	view := processView{
		AllHeld: len(held), AllWaiting: len(waiting), Held: []heldRow{}, Waiting: []waitingRow{},
	}
	if unreachable != nil {
		view.Outage = problemOf(unreachable).Title
	}
	for _, l := range held {
		view.Held = append(view.Held, heldRow{
			Name: l.Name, Mode: l.Mode, Owner: l.Owner, Token: l.Token, Permits: l.Permits,
			Since: timeOf(l.Since), Valid: newCountdown(max(time.Until(l.ValidUntil), 0), l.TTL), Renewed: l.Renewed,
		})
	}
	for _, w := range waiting {
		view.Waiting = append(view.Waiting, waitingRow{
			Name: w.Name, Mode: w.Mode, Owner: w.Owner, Since: timeOf(w.Since), Position: w.Position, InRedis: w.InRedis,
		})
	}
	var by selection
	view.Sort, by = sorted(view.Held, heldOrders, q)
	sorted(view.Waiting, waitingOrders, q)
	view.Form.Selects = []selection{by}
	view.Held, view.Waiting = view.Held[:min(len(view.Held), mostHeld)], view.Waiting[:min(len(view.Waiting), mostHeld)]
	return view, nil
}
