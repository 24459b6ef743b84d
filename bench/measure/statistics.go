// Package measure counts what a workload costs and condenses what was counted.
package measure

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the value below which the share q lies; NaN if there are no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}

// Median returns the middle value, the mean of the two middle ones of an even number, NaN of none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Jain returns Jain's index of what each got: 1 if all got the same, 1/n if one got everything.
func Jain(got []float64) float64 {
	var sum, squares float64
	for _, x := range got {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(got)) * squares)
}

// Ratios divides round by round, so that what slows a whole round down does not show. The longer list is cut.
func Ratios(of, by []float64) []float64 {
	n := min(len(of), len(by))
	ratios := make([]float64, n)
	for i := range n {
		ratios[i] = of[i] / by[i]
	}
	return ratios
}

// Microseconds converts for [Quantile] and the tables.
func Microseconds(times []time.Duration) []float64 {
	us := make([]float64, len(times))
	for i, t := range times {
		us[i] = float64(t) / float64(time.Microsecond)
	}
	return us
}
