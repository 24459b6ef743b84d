package nethttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// TestZeroGuard: a Guard that no function of the package has made says so.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var g httplock.Guard
	_, peek := g.Peek(t.Context(), httplock.Key{})
	_, records := g.Records(t.Context(), httplock.Key{})
	for method, err := range map[string]error{
		"Peek": peek, "Records": records,
		"Resolve": g.Resolve(t.Context(), httplock.Key{}, nil), "Forget": g.Forget(t.Context(), httplock.Key{}),
	} {
		if err == nil || errors.Is(err, httplock.ErrKeyRequired) || !strings.Contains(err.Error(), "NewOnce") {
			t.Errorf("%s: error %v, want one that says how to make a guard", method, err)
		}
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "zero Guard") {
			t.Errorf("panic %q, want one that names the zero Guard", p)
		}
	}()
	g.Wrap(http.NotFoundHandler())
}
