package inspector

import (
	"context"
	"net/url"

	"github.com/holdfast-go/holdfast/core"
)

// perPage is about how many locks or records a page of a list has.
const perPage = 50

// lockList is a part of the list of all locks that are held.
type lockList struct {
	Prefix  string    `json:"prefix"`
	Cursor  string    `json:"cursor,omitempty"`
	Next    string    `json:"next,omitempty"` // the cursor of the next page
	Skipped int       `json:"skipped,omitempty"`
	Locks   []lockRow `json:"locks"`
}

// lockRow is one lock of a list.
type lockRow struct {
	Name    string    `json:"name"`
	Digest  string    `json:"digest"`
	Mode    core.Mode `json:"mode"`
	Foreign bool      `json:"foreign,omitempty"` // held by a client of Redisson
	Holders []holder  `json:"holders"`           // at most three
	Holds   int       `json:"holds"`             // all of them
	TTL     countdown `json:"ttl"`
	Places  int       `json:"places"` // in the queue; -1 if unknown
	Waiters int       `json:"waiters"`
	Value   string    `json:"value,omitempty"` // of a leader
}

// More returns how many holders the row does not have.
func (l lockRow) More() int { return max(l.Holds-len(l.Holders), 0) }

func readLocks(ctx context.Context, h *Handler, q url.Values) (any, error) {
	prefix, cursor := q.Get("prefix"), q.Get("cursor")
	page, err := h.locks.List(ctx, prefix, cursor, perPage)
	if err != nil {
		return nil, err
	}
	list := lockList{Prefix: prefix, Cursor: cursor, Next: page.Next, Skipped: page.Skipped, Locks: []lockRow{}}
	for _, e := range page.Locks {
		list.Locks = append(list.Locks, lockRow{
			Name: e.Name, Digest: h.locks.Digest(e.Name), Mode: e.Mode, Foreign: e.Foreign,
			Holders: h.newHolders(e.Holders), Holds: e.Holds, TTL: newCountdown(e.TTL, h.locks.TTL()),
			Places: e.Places, Waiters: e.Waiters, Value: e.Value,
		})
	}
	return list, nil
}
