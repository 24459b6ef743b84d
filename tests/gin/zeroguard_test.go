package gin_test

import (
	"errors"
	"strings"
	"testing"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
)

// TestZeroGuard: a Guard that no function of the package has made says so.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var g ginlock.Guard
	_, peek := g.Peek(t.Context(), ginlock.Key{})
	_, records := g.Records(t.Context(), ginlock.Key{})
	for method, err := range map[string]error{
		"Peek": peek, "Records": records,
		"Resolve": g.Resolve(t.Context(), ginlock.Key{}, nil), "Forget": g.Forget(t.Context(), ginlock.Key{}),
	} {
		if err == nil || errors.Is(err, ginlock.ErrKeyRequired) || !strings.Contains(err.Error(), "NewOnce") {
			t.Errorf("%s: error %v, want one that says how to make a guard", method, err)
		}
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "zero Guard") {
			t.Errorf("panic %q, want one that names the zero Guard", p)
		}
	}()
	g.Handle(nil)
}
