package main

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// example costs 20 µs on a busy server, and 30 µs more for each of its two commands that finds it idle.
var example = Operation{Commands: 2, Batched: 12, PerRead: 10, Warm: 20, Idle: 30, In: 700, Out: 40, Client: 25}

// TestUtilisationIsBetweenItsBounds, and approaches the busy server as the load grows.
func TestUtilisationIsBetweenItsBounds(t *testing.T) {
	t.Parallel()
	last := math.Inf(1)
	for _, rate := range []float64{100, 1000, 10_000, 40_000} {
		var load Load
		load.Add(example, rate)
		u := load.Utilisation()
		if u.Low >= u.Expected || u.Expected >= u.High {
			t.Errorf("%v/s: %+v", rate, u)
		}
		each := u.Expected * second / rate
		if each >= last || each < example.Warm || each > example.Warm+2*example.Idle {
			t.Errorf("%v/s: %v µs each, %v µs at a lower rate", rate, each, last)
		}
		last = each
	}
	if u := (Load{}).Utilisation(); u != (Range{}) {
		t.Errorf("no load: %+v", u)
	}
}

// TestBothCostsAreFound in two loads that were made of them.
func TestBothCostsAreFound(t *testing.T) {
	t.Parallel()
	at := func(rate float64) point {
		var load Load
		load.Add(example, rate)
		return point{load.Utilisation().Expected, load.Commands}
	}
	warm, idle := warmAndIdle(at(30_000), at(4000))
	if !near(warm*example.Commands, example.Warm) || !near(idle, example.Idle) {
		t.Errorf("%v and %v µs", warm, idle)
	}
}

// TestCapacityReachesTheUtilisation, and no more.
func TestCapacityReachesTheUtilisation(t *testing.T) {
	t.Parallel()
	var load Load
	load.Add(example, 1000)
	factor := load.capacity(0.6)
	if u := load.times(factor).Utilisation().Expected; !near(u, 0.6) {
		t.Errorf("%v at %v times the load", u, factor)
	}
}

// TestOneOfSeveralServers has its part of the commands, and of all costs.
func TestOneOfSeveralServers(t *testing.T) {
	t.Parallel()
	var all, part Load
	all.Add(example, 9000)
	part.Add(example, 3000)
	if got, want := all.Of(3).Utilisation(), part.Utilisation(); !near(got.Expected, want.Expected) || !near(got.High, want.High) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestSlowerCommands cost more, and are as many.
func TestSlowerCommands(t *testing.T) {
	t.Parallel()
	var load Load
	load.Add(example, 9000)
	slower := load.slower(1.5)
	if slower.Commands != load.Commands || !near(slower.Utilisation().Low, 1.5*load.Utilisation().Low) {
		t.Errorf("%+v of %+v", slower, load)
	}
}
