package measure_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := measure.Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if got := measure.Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.9: 4.6, 1: 5} {
		if got := measure.Quantile(values, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if !slices.Equal(values, []float64{5, 1, 4, 2, 3}) {
		t.Error("the values were sorted in place")
	}
}

// TestFastestTenth: of rates it is the highest tenth, of times the shortest.
func TestFastestTenth(t *testing.T) {
	t.Parallel()
	values := []float64{11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if got := measure.FastestRate(values); got != 10 {
		t.Errorf("rate %v, want 10", got)
	}
	if got := measure.FastestTime(values); got != 2 {
		t.Errorf("time %v, want 2", got)
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for want, got := range map[float64][]float64{1: {2, 2, 2, 2}, 0.25: {7, 0, 0, 0}, 0.9: {1, 2}} {
		if index := measure.Jain(got); math.Abs(index-want) > 1e-9 {
			t.Errorf("Jain's index of %v is %v, want %v", got, index, want)
		}
	}
}

// TestRatios: a round that was slow for both does not show.
func TestRatios(t *testing.T) {
	t.Parallel()
	got := measure.Ratios([]float64{20, 2, 30}, []float64{10, 1})
	if !slices.Equal(got, []float64{2, 2}) {
		t.Errorf("ratios %v", got)
	}
}

func TestBookIsReadAsSaved(t *testing.T) {
	t.Parallel()
	book, key := measure.NewBook(), measure.Key{Work: "pairs", Who: "x", Size: 64, Figure: "pairs/s"}
	book.Add(key, 1)
	book.Add(key, 3)
	path := filepath.Join(t.TempDir(), "new", "results.json")
	if err := book.Save(path); err != nil {
		t.Fatal(err)
	}
	read, err := measure.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read.Values(key), []float64{1, 3}) || read.Median(key) != 2 || !read.Has("pairs") || read.Has("once") {
		t.Errorf("read %v", read.Values(key))
	}
}
