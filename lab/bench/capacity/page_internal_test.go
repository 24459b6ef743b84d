package main

import (
	"strings"
	"testing"
)

// TestPage has all tables, without a figure that was not measured.
func TestPage(t *testing.T) {
	t.Parallel()
	costs, err := embeddedCosts()
	if err != nil {
		t.Fatal(err)
	}
	text, err := pageText(costs)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(text, "\n| ---"); got != 7 {
		t.Errorf("%d tables, want 7", got)
	}
	if strings.Contains(text, "–") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("a figure is missing:\n%s", text)
	}
}

// TestVerdict: the greatest errors of both signs, and what is outside of its bounds.
func TestVerdict(t *testing.T) {
	t.Parallel()
	c := Costs{
		Checks: []Check{
			{Predicted: Range{Low: 0.1, Expected: 0.22, High: 0.4}, Measured: 0.2},
			{Predicted: Range{Low: 0.1, Expected: 0.38, High: 0.39}, Measured: 0.4},
		},
		Checked: MemoryCheck{Predicted: 9e6, Measured: 10e6},
	}
	got := c.verdict()
	for _, want := range []string{"Of 2 measured utilisations, 1 are", "-5% to +10% off", "10 MB, and the prediction 9 MB (-10%)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestClusterIsPredicted from the part of a master, at the cost of commands in a Cluster.
func TestClusterIsPredicted(t *testing.T) {
	t.Parallel()
	c := exampleCosts()
	if got := c.clusterFactor(); !near(got, 1.1) {
		t.Errorf("factor %v, want 1.1", got)
	}
	of := func(locks, factor float64) float64 {
		var load Load
		load.Add(example, locks)
		return load.slower(factor).Utilisation().Expected
	}
	for s, want := range map[Clustered]float64{
		{Masters: 0, PerSecond: 6000}:            of(6000, 1),
		{Masters: 3, PerSecond: 6000}:            of(2000, 1.1),
		{Masters: 3, PerSecond: 6000, Tag: true}: of(6000, 1.1),
	} {
		if got := s.predicted(c); !near(got, want) {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
}
