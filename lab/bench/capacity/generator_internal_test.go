package main

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// TestGenerator: what a run counts is what the server has seen, and an error ends it.
func TestGenerator(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := oneServer()
	defer s.stop()
	f, err := s.fleet(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	mix := []share{{works()[0], 200}, {works()[4], 100}}
	taken, err := f.poisson(ctx, mix, time.Millisecond, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	const loads = 8 // at most: a script that the server does not know is sent once more
	n, used := taken.operations(), taken.total()
	if n < 50 || used.Commands < 2*n || used.Commands > 2*n+loads || used.CPU <= 0 || used.Reads < n {
		t.Errorf("%v operations, used %+v", n, used)
	}
	if taken.done["Mutex"] <= taken.done[onceName] || taken.done[onceName] == 0 {
		t.Errorf("done %v of twice as many locks", taken.done)
	}
	failure := errors.New("broken")
	broken := work{"", func(context.Context, *core.Client, string, time.Duration) error { return failure }}
	if _, err := f.closed(ctx, broken, 2, time.Minute); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
}

// TestPick follows the shares.
func TestPick(t *testing.T) {
	t.Parallel()
	mix := []share{{work{name: "a"}, 3}, {work{name: "b"}, 1}}
	count := 0.
	const draws = 10_000
	for range draws {
		if pick(mix, 4).name == "a" {
			count++
		}
	}
	if math.Abs(count/draws-0.75) > 0.03 {
		t.Errorf("share %v, want 0.75", count/draws)
	}
}

// TestSpread calls for each number once, and returns an error.
func TestSpread(t *testing.T) {
	t.Parallel()
	seen := make([]int, 1000)
	if err := spread(len(seen), func(i int) error { seen[i]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("%d: %d times", i, n)
		}
	}
	failure := errors.New("broken")
	if err := spread(10, func(int) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
}
