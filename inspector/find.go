package inspector

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/logdigest"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// searchLimit bounds the search for a digest, which has to look at all keys.
const searchLimit = 2 * time.Second

// mostMatches bounds what a search for a digest returns. More than one are names whose digests are equal by chance.
const mostMatches = 10

// errBusy refuses a second search at the same time.
var errBusy = errors.New("another search is running")

// findView is what was found under a name or a digest.
type findView struct {
	Query    string  `json:"query"`
	Matches  []match `json:"matches"`
	Searched bool    `json:"searched"` // for a digest or the hash of a key, among all keys
	Stopped  bool    `json:"stopped"`  // before all keys were seen
}

// match is a lock or a record.
type match struct {
	Kind object `json:"kind"`
	Name string `json:"name"`
}

// Page returns the address of a match.
func (m match) Page() string { return m.Kind.address(m.Name) }

// location leads to the only match.
func (f findView) location() string {
	if len(f.Matches) == 1 {
		return f.Matches[0].Page()
	}
	return ""
}

// readFind looks for exactly this name, and only if there is none for the digest or the hash of a key.
func readFind(ctx context.Context, h *Handler, q url.Values) (any, error) {
	view := findView{Query: q.Get("q"), Matches: []match{}}
	info, err := h.locks.Inspect(ctx, view.Query)
	if err != nil && !errors.Is(err, core.ErrWrongType) {
		return nil, err
	}
	if err == nil && (info.Mode != "" || info.Places > 0) {
		view.Matches = append(view.Matches, match{objectLock, view.Query})
	}
	record, err := h.locks.Once(view.Query).Peek(ctx)
	if err != nil && !errors.Is(err, core.ErrWrongType) {
		return nil, err
	}
	if record.State != core.StateNone {
		view.Matches = append(view.Matches, match{objectRecord, view.Query})
	}
	digest, ok := logdigest.Parse(view.Query)
	if len(view.Matches) > 0 || !ok {
		return view, nil
	}
	return h.findDigest(ctx, view, digest)
}

// findDigest walks over all keys, for a bounded time.
func (h *Handler) findDigest(ctx context.Context, view findView, digest string) (any, error) {
	select {
	case h.search <- struct{}{}:
		defer func() { <-h.search }()
	default:
		return nil, errBusy
	}
	view.Searched = true
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	for found, err := range seal.NamesOf(h.locks).FindDigest(ctx, digest) {
		switch {
		case ctx.Err() != nil:
			view.Stopped = true
			return view, nil
		case err != nil:
			return nil, err
		}
		kind := objectLock
		if found.Record {
			kind = objectRecord
		}
		if view.Matches = append(view.Matches, match{kind, found.Name}); len(view.Matches) == mostMatches {
			view.Stopped = true
			break
		}
	}
	return view, nil
}
