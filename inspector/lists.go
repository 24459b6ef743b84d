package inspector

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// partSizes are about how many locks or records a part of a list may have. The first is the default.
var partSizes = []int{50, 200, 1000}

// part is a part of a list: what was asked for, and where it continues.
type part struct {
	Prefix string `json:"prefix"`
	Cursor string `json:"cursor,omitempty"`
	Next   string `json:"next,omitempty"` // the cursor of the next part
	Sort   string `json:"sort"`
	Limit  int    `json:"limit"`
	Page   string `json:"-"`
	Form   form   `json:"-"`
}

// form is what can be chosen for a list.
type form struct {
	ByPrefix bool // the list may be limited to a prefix
	Prefix   string
	Selects  []selection
}

// selection is a field with choices.
type selection struct {
	Name, Title string
	Choices     []choice
}

// choice is one value of a selection.
type choice struct {
	Value, Title string
	Chosen       bool
}

// newPart reads what is asked of a page with a list in parts.
func newPart(page string, q url.Values) part {
	p := part{Prefix: q.Get("prefix"), Cursor: q.Get("cursor"), Limit: partSizes[0], Page: page}
	size := selection{Name: "limit", Title: "Show"}
	for _, n := range partSizes {
		text := strconv.Itoa(n)
		if q.Get("limit") == text {
			p.Limit = n
		}
		size.Choices = append(size.Choices, choice{text, text, q.Get("limit") == text})
	}
	p.Form = form{ByPrefix: true, Prefix: p.Prefix, Selects: []selection{size}}
	return p
}

// Whole returns true if the part is the whole list.
func (p part) Whole() bool { return p.Cursor == "" && p.Next == "" }

// First returns the address of the first part.
func (p part) First() string { return p.address("") }

// Following returns the address of the next part.
func (p part) Following() string { return p.address(p.Next) }

func (p part) address(cursor string) string {
	pairs := []string{"prefix", p.Prefix, "cursor", cursor}
	for _, s := range p.Form.Selects {
		for i, c := range s.Choices {
			if c.Chosen && i > 0 { // the first is the default
				pairs = append(pairs, s.Name, c.Value)
			}
		}
	}
	return link(p.Page, pairs...)
}

// order is a way to sort a list. Rows that compare equal stay as they were: sorted by name.
type order[T any] struct {
	key, title string
	compare    func(a, b T) int // nil: as they are
}

// sorted sorts rows by the order that is asked for, and by the first one otherwise. It returns its key and the choice.
func sorted[T any](rows []T, orders []order[T], q url.Values) (key string, s selection) {
	chosen := max(slices.IndexFunc(orders, func(o order[T]) bool { return o.key == q.Get("sort") }), 0)
	if by := orders[chosen].compare; by != nil {
		slices.SortStableFunc(rows, by)
	}
	s = selection{Name: "sort", Title: "Sort by"}
	for i, o := range orders {
		s.Choices = append(s.Choices, choice{o.key, o.title, i == chosen})
	}
	return orders[chosen].key, s
}

// sort notes how the part was sorted.
func (p *part) sort(key string, s selection) {
	p.Sort, p.Form.Selects = key, append([]selection{s}, p.Form.Selects...)
}

// earlier compares times: the earliest first, and those that are not known last.
func earlier(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

// sooner compares times that run out: the shortest first, and those that never do last.
func sooner(a, b countdown) int {
	if a.Endless() != b.Endless() {
		return -cmp.Compare(a.Left, b.Left)
	}
	return cmp.Compare(a.Left, b.Left)
}
