package core_test

import (
	"slices"
	"time"
)

func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

func longest(grants []time.Time) (gap time.Duration) {
	for i := 1; i < len(grants); i++ {
		gap = max(gap, grants[i].Sub(grants[i-1]))
	}
	return gap
}

func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
