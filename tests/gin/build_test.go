package gin_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
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
		option   ginlock.Option
		says     string
	}{
		"strategy":        {nil, key, nil, "strategy is nil"},
		"key":             {never, nil, nil, "key function is nil"},
		"methods":         {never, key, ginlock.WithMethods(), "no methods"},
		"method":          {never, key, ginlock.WithMethods("POST", ""), "a method is empty"},
		"wait":            {never, key, ginlock.WithWait(-1), "negative wait"},
		"body":            {never, key, ginlock.WithBodyLimit(-1), "negative body limit"},
		"lock option":     {never, key, ginlock.WithLock(core.WithTTL(0)), "WithTTL(0s)"},
		"refusal handler": {never, key, ginlock.WithRefusalHandler(nil), "WithRefusalHandler"},
		"shared":          {never, key, middleware.WithWait(-1), "negative wait"},
		"other adapter":   {never, key, httplock.WithRefusalHandler(nil), "httplock.WithRefusalHandler is an option of another adapter"},
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
		option ginlock.Option
		says   string
	}{
		"client":          {nil, key, nil, "client is nil"},
		"key":             {locks, nil, nil, "key function is nil"},
		"retention":       {locks, key, ginlock.WithRetention(-1), "WithRetention(-1ns)"},
		"record limit":    {locks, key, ginlock.WithRecordLimit(-1), "record limit"},
		"refusal handler": {locks, key, ginlock.WithRefusalHandler(nil), "WithRefusalHandler"},
		"other adapter":   {locks, key, httplock.WithRefusalHandler(nil), "httplock.WithRefusalHandler is an option of another"},
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
			for _, build := range []func(){
				func() { ginlock.Once(test.client, test.key, test.option) },
				func() { ginlock.Idempotent(test.client, test.key, test.option) },
			} {
				func() {
					defer func() {
						if p, _ := recover().(error); p == nil || p.Error() != once.Error() {
							t.Errorf("panic %v, want %v", p, once)
						}
					}()
					build()
				}()
			}
		})
	}
}
