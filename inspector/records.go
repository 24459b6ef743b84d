package inspector

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// recordList is a part of the list of all records.
type recordList struct {
	part
	State   core.State   `json:"state,omitempty"` // only records in it are listed
	Records []recordView `json:"records"`
}

// recordView is one record of Once. A list leaves the value out.
type recordView struct {
	Key         string     `json:"key"`
	Digest      string     `json:"digest"`
	ProofKey    string     `json:"proof_key,omitempty"` // of its row, if the work has a proof; a list leaves it out
	State       core.State `json:"state"`               // "" if nothing is recorded
	Label       string     `json:"label,omitempty"`     // the route, job or task type
	Instance    string     `json:"instance,omitempty"`  // the process of the last attempt
	Attempt     int        `json:"attempt"`
	Token       int64      `json:"token,omitempty"`
	Size        int        `json:"size"` // bytes of the value
	Value       string     `json:"value,omitempty"`
	Omitted     bool       `json:"omitted,omitempty"`
	Fingerprint string     `json:"fingerprint,omitempty"` // hex digits
	Reason      string     `json:"reason,omitempty"`
	Note        string     `json:"note,omitempty"`
	Began       *time.Time `json:"began,omitempty"`
	Ended       *time.Time `json:"ended,omitempty"`
	Lease       countdown  `json:"lease"`
	Retention   countdown  `json:"retention"`
	Shown       bool       `json:"-"` // the value may be shown
}

// Recorded returns true if there is a record.
func (r recordView) Recorded() bool { return r.State != core.StateNone }

// Running returns true if an attempt is running.
func (r recordView) Running() bool { return r.State == core.StateRunning }

// Completed returns true if a run took effect.
func (r recordView) Completed() bool { return r.State == core.StateCompleted }

// WithoutResult returns true if a run took effect, and the record has no result that an operator could not add here. A run may have had
// none, or one that was not recorded.
func (r recordView) WithoutResult() bool {
	return r.Completed() && r.Size == 0 && !httprecord.IsEncoded(r.Key)
}

func (h *Handler) newRecord(r core.Record, size int) recordView {
	view := recordView{
		Key: r.Key, Digest: seal.NamesOf(h.locks).Digest(r.Key, true), ProofKey: r.ProofKey, State: r.State, Label: r.Label, Instance: r.Instance, Attempt: r.Attempt, Token: r.Token, Size: size,
		Omitted: r.Omitted, Fingerprint: hex.EncodeToString(r.Fingerprint), Reason: r.Reason,
		Began: timeOf(r.Began), Ended: timeOf(r.Ended), Lease: newCountdown(r.Lease, seal.FactsOf(h.locks).Client.TTL()),
		Retention: newCountdown(r.Retention, 0), Shown: h.config.values,
	}
	if h.config.values {
		view.Value, view.Note = string(r.Value), r.Note
	}
	return view
}

// choose adds the choice of a state to the list, and returns the states to be listed. No record has an unknown one, which
// core refuses.
func (l *recordList) choose(state string) (states []string) {
	by := selection{Name: "state", Title: "State"}
	for _, s := range recordStates {
		title := string(s)
		if s == core.StateNone {
			title = "all"
		}
		by.Choices = append(by.Choices, choice{string(s), title, state == string(s)})
	}
	l.Form.Selects = append([]selection{by}, l.Form.Selects...)
	if l.State = core.State(state); l.State != core.StateNone {
		states = []string{state}
	}
	return states
}

// recordOrders are the ways to sort records.
var recordOrders = []order[recordView]{
	{"key", "key", nil},
	{"oldest", "oldest", func(a, b recordView) int { return earlier(a.Began, b.Began) }},
	{"newest", "newest", func(a, b recordView) int { return earlier(b.Began, a.Began) }},
	{"kept", "soonest to expire", func(a, b recordView) int { return sooner(a.Retention, b.Retention) }},
	{"attempts", "most attempts", func(a, b recordView) int { return -cmp.Compare(a.Attempt, b.Attempt) }},
}

// recordStates are the states by which records are listed; none is all.
var recordStates = []core.State{core.StateNone, core.StateUnknown, core.StateRunning, core.StateAbandoned, core.StateCompleted}

// mostParts bounds how many parts are read for one page if those before have no record in the state.
const mostParts = 10

// readPart reads the next part with a record in one of the states, or as much as a page may read.
func (h *Handler) readPart(ctx context.Context, list *recordList, states []string) error {
	page := &seal.Page{Next: list.Cursor, Limit: list.Limit, States: states}
	for range mostParts {
		page.Cursor = page.Next
		for r, err := range h.locks.Records(seal.WithPage(ctx, page), list.Prefix) {
			if err != nil {
				return err
			}
			list.Records = append(list.Records, h.newRecord(r.Record, r.Size))
		}
		if len(list.Records) > 0 || page.Next == "" || len(states) == 0 {
			break
		}
	}
	list.Next = page.Next
	return nil
}

func readRecords(ctx context.Context, h *Handler, q url.Values) (any, error) {
	list := recordList{part: newPart("records", q), Records: []recordView{}}
	if err := h.readPart(ctx, &list, list.choose(q.Get("state"))); err != nil {
		return nil, err
	}
	list.sort(sorted(list.Records, recordOrders, q))
	return list, nil
}

func readRecord(ctx context.Context, h *Handler, q url.Values) (any, error) {
	record, err := h.locks.Once(q.Get("name")).Peek(ctx)
	if err != nil {
		return nil, err
	}
	return h.newRecord(record, len(record.Value)), nil
}
