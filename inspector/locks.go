package inspector

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// lockList is a part of the list of all locks that are held.
type lockList struct {
	part
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

// Since returns when the first of the holders that are shown was granted the lock; nil if that is not known.
func (l lockRow) Since() *time.Time {
	if len(l.Holders) == 0 {
		return nil
	}
	return slices.MinFunc(l.Holders, func(a, b holder) int { return earlier(a.Granted, b.Granted) }).Granted
}

// lockOrders are the ways to sort locks.
var lockOrders = []order[lockRow]{
	{"name", "name", nil},
	{"since", "held for longest", func(a, b lockRow) int { return earlier(a.Since(), b.Since()) }},
	{"left", "least time left", func(a, b lockRow) int { return sooner(a.TTL, b.TTL) }},
	{"waiting", "most waiting", func(a, b lockRow) int {
		return -cmp.Compare(max(a.Places, a.Waiters), max(b.Places, b.Waiters))
	}},
}

func readLocks(ctx context.Context, h *Handler, q url.Values) (any, error) {
	list := lockList{part: newPart("", q), Locks: []lockRow{}}
	page := &seal.Page{Cursor: list.Cursor, Limit: list.Limit}
	for e, err := range h.locks.Locks(seal.WithPage(ctx, page), list.Prefix) {
		if err != nil {
			return nil, err
		}
		list.Locks = append(list.Locks, lockRow{
			Name: e.Name, Digest: seal.NamesOf(h.locks).Digest(e.Name, false), Mode: e.Mode, Foreign: e.Foreign,
			Holders: h.newHolders(e.Holders), Holds: e.Holds, TTL: newCountdown(e.TTL, seal.FactsOf(h.locks).Client.TTL()),
			Places: e.Places, Waiters: e.Waiters, Value: e.Value,
		})
	}
	list.Next, list.Skipped = page.Next, page.Skipped
	list.sort(sorted(list.Locks, lockOrders, q))
	return list, nil
}
