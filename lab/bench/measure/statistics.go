// Package measure counts what a workload costs and condenses what was counted.
package measure

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the value below which the share q lies, between two values if need be; NaN if there are none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	below, part := math.Modf(q * float64(len(sorted)-1))
	i := int(below)
	return sorted[i] + part*(sorted[min(i+1, len(sorted)-1)]-sorted[i])
}

// Median returns the middle value, the mean of the two middle ones of an even number, NaN of none.
func Median(values []float64) float64 {
	return Quantile(values, 0.5)
}

// FastestRate returns the rate that the fastest tenth of the rounds have reached, NaN if there are none. It tells least
// of what else the machine did.
func FastestRate(rates []float64) float64 { return Quantile(rates, 0.9) }

// FastestTime is the same of times: the one that the fastest tenth of the rounds have taken at most.
func FastestTime(times []float64) float64 { return Quantile(times, 0.1) }

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
