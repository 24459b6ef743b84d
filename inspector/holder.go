package inspector

import (
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// countdown is a time that runs out, for a bar.
type countdown struct {
	Left  int64 `json:"left_ms"`
	Whole int64 `json:"-"` // what is a full bar; 0 if it is not known
}

// newCountdown returns the countdown of a TTL. Redis does not have the whole TTL of every lease, so the client's TTL stands
// for it. If more is left, as of a lease WithFixedTTL, the whole is not known: a bar would be full whatever is left. Negative means
// never.
func newCountdown(left, whole time.Duration) countdown {
	c := countdown{Left: millis(left), Whole: millis(whole)}
	if c.Left > c.Whole {
		c.Whole = 0
	}
	return c
}

// Endless returns true if the time never runs out.
func (c countdown) Endless() bool { return c.Left < 0 }

// holder is one holder of a lock.
type holder struct {
	Owner    string     `json:"owner"`
	Instance string     `json:"instance,omitempty"` // host and process
	Holds    int        `json:"holds"`
	TTL      countdown  `json:"ttl"`
	Token    int64      `json:"token,omitempty"`
	Granted  *time.Time `json:"granted,omitempty"`
	Permits  int        `json:"permits,omitempty"`
	Limit    int        `json:"limit,omitempty"`
	Slot     int        `json:"slot,omitempty"`
}

func (h *Handler) newHolder(of core.Holder) holder {
	return holder{
		Owner: of.Owner, Instance: of.Instance, Holds: of.Holds, TTL: newCountdown(of.TTL, seal.FactsOf(h.locks).Client.TTL()), Token: of.Token,
		Granted: timeOf(of.Granted), Permits: of.Permits, Limit: of.Limit, Slot: of.Slot,
	}
}

func (h *Handler) newHolders(of []core.Holder) []holder {
	all := make([]holder, 0, len(of))
	for _, one := range of {
		all = append(all, h.newHolder(one))
	}
	return all
}

// timeOf returns nil for the zero time, which JSON and templates leave out.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
