package workload_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// TestInstructions bounds what a Mutex and a Fair lock cost the server, of Redisson's shape. The bounds are a twentieth above what
// was measured with Redis 7.0.
func TestInstructions(t *testing.T) {
	t.Parallel()
	bounds := map[string]float64{"holdfast Mutex": 1.24, "holdfast Fair": 1.5}
	counted := make(map[string]float64)
	for _, of := range shape.Slow() {
		if bounds[of.Name] == 0 && of.Name != shape.RedissonName {
			continue
		}
		n, err := workload.Instructions(context.Background(), of)
		if errors.Is(err, workload.ErrNoCounter) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", of.Name, err)
		}
		counted[of.Name] = n
	}
	for name, bound := range bounds {
		ratio := counted[name] / counted[shape.RedissonName]
		t.Logf("%s: %.0f instructions, %.3f of Redisson's shape", name, counted[name], ratio)
		if ratio > bound {
			t.Errorf("%s: %.3f of Redisson's shape, at most %.2f are expected", name, ratio, bound)
		}
	}
}
