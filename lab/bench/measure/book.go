package measure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Key says what a figure tells: who did what, at which size, and which of its costs.
type Key struct {
	Work   string `json:"work"`
	Who    string `json:"who"`
	Size   int    `json:"size"`
	Figure string `json:"figure"`
}

// Book keeps figures, one for each round.
type Book struct{ figures map[Key][]float64 }

// NewBook returns an empty book.
func NewBook() *Book { return &Book{figures: make(map[Key][]float64)} }

// Add appends the figure of the next round.
func (b *Book) Add(k Key, value float64) { b.figures[k] = append(b.figures[k], value) }

// AddAll appends several values at once, of a figure that has many in each round.
func (b *Book) AddAll(k Key, values []float64) { b.figures[k] = append(b.figures[k], values...) }

// Values returns a figure's rounds, nil if it was not measured.
func (b *Book) Values(k Key) []float64 { return b.figures[k] }

// Median returns the median over the rounds, NaN if there were none.
func (b *Book) Median(k Key) float64 { return Median(b.figures[k]) }

// Has reports whether anything of a workload was measured.
func (b *Book) Has(work string) bool { return len(b.Keys(work)) > 0 }

// Keys returns what was measured of a workload, in order.
func (b *Book) Keys(work string) (keys []Key) {
	for k := range b.figures {
		if k.Work == work {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, Key.compare)
	return keys
}

func (k Key) compare(l Key) int {
	return cmp.Or(cmp.Compare(k.Work, l.Work), cmp.Compare(k.Who, l.Who), cmp.Compare(k.Size, l.Size),
		cmp.Compare(k.Figure, l.Figure))
}

type entry struct {
	Key
	Rounds []float64 `json:"rounds"`
}

// Save writes all figures to a JSON file, and makes its directory if there is none.
func (b *Book) Save(path string) error {
	var all []entry
	for k, rounds := range b.figures {
		all = append(all, entry{k, rounds})
	}
	slices.SortFunc(all, func(x, y entry) int { return x.compare(y.Key) })
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}

// Open reads what Save has written.
func Open(path string) (*Book, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var all []entry
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("results in %s: %w", path, err)
	}
	b := NewBook()
	for _, e := range all {
		b.figures[e.Key] = e.Rounds
	}
	return b, nil
}
