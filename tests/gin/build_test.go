package gin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	never := coretest.Unused(t)
	key := httplock.Constant("all")
	for name, test := range map[string]struct {
		strategy core.Strategy
		key      httplock.KeyFunc
		option   httplock.Option
		says     string
	}{
		"strategy":        {nil, key, nil, "strategy is nil"},
		"key":             {never, nil, nil, "key function is nil"},
		"methods":         {never, key, httplock.WithMethods(), "no methods"},
		"method":          {never, key, httplock.WithMethods("POST", ""), "a method is empty"},
		"wait":            {never, key, core.WithWait(-1), "WithWait(-1ns)"},
		"body":            {never, key, httplock.WithBodyLimit(-1), "negative body limit"},
		"lock option":     {never, key, core.WithTTL(0), "WithTTL(0s)"},
		"refusal handler": {never, key, ginlock.WithRefusalHandler(nil), "WithRefusalHandler"},
		"shared":          {never, key, core.WithWait(-1), "WithWait(-1ns)"},
		"of net/http":     {never, key, httplock.WithRefusalHandler(nil), "WithRefusalHandler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ginlock.NewExclusive(test.strategy, test.key, test.option)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			defer func() {
				if p, _ := recover().(error); p == nil || p.Error() != err.Error() {
					t.Errorf("panic %v, want %v", p, err)
				}
			}()
			ginlock.Exclusive(test.strategy, test.key, test.option)
		})
	}
	if _, err := ginlock.NewExclusive(never, key, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

func TestBuildErrorsOfRecords(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := httplock.Constant("all")
	for name, test := range map[string]struct {
		client *core.Client
		key    httplock.KeyFunc
		option httplock.Option
		says   string
	}{
		"client":          {nil, key, nil, "client is nil"},
		"key":             {locks, nil, nil, "key function is nil"},
		"retention":       {locks, key, core.WithRetention(-1), "WithRetention(-1ns)"},
		"record limit":    {locks, key, core.WithMaxValue(-1), "WithMaxValue(-1)"},
		"refusal handler": {locks, key, ginlock.WithRefusalHandler(nil), "WithRefusalHandler"},
		"of net/http":     {locks, key, httplock.WithRefusalHandler(nil), "WithRefusalHandler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, once := ginlock.NewOnce(test.client, test.key, test.option)
			_, idempotent := ginlock.NewIdempotent(test.client, test.key, test.option)
			for _, err := range []error{once, idempotent} {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
			}
			for want, build := range map[error]func(){
				once:       func() { ginlock.Once(test.client, test.key, test.option) },
				idempotent: func() { ginlock.Idempotent(test.client, test.key, test.option) },
			} {
				func() {
					defer func() {
						if p, _ := recover().(error); p == nil || p.Error() != want.Error() {
							t.Errorf("panic %v, want %v", p, want)
						}
					}()
					build()
				}()
			}
		})
	}
}

// TestZeroGuard: a Guard that no function of the package has made says so.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var g ginlock.Guard
	_, peek := g.PeekKey(t.Context(), httplock.Key{})
	_, records := g.Records(t.Context(), "ada")
	for method, err := range map[string]error{
		"Peek": peek, "Records": records,
		"Resolve": g.Resolve(t.Context(), core.Record{}, nil), "Forget": g.Forget(t.Context(), core.Record{}),
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
	g.Wrap(nil)
}
