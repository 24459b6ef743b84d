package nethttp_test

import (
	"errors"
	"net/http"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

func TestFirstOf(t *testing.T) {
	t.Parallel()
	own := errors.New("the database is down")
	fails := func(err error) httplock.KeyFunc {
		return func(*http.Request) (httplock.Key, error) { return httplock.Key{}, err }
	}
	lacking, noScope := fails(httplock.ErrKeyRequired), fails(httplock.ErrScopeRequired)
	one, two := httplock.Constant("one"), httplock.Constant("two")
	for name, test := range map[string]struct {
		fns  []httplock.KeyFunc
		key  httplock.KeyFunc
		want error
	}{
		"the first":              {[]httplock.KeyFunc{one, two}, one, nil},
		"the first, no other":    {[]httplock.KeyFunc{one, fails(own)}, one, nil},
		"no key":                 {[]httplock.KeyFunc{lacking, two, one}, two, nil},
		"no scope":               {[]httplock.KeyFunc{noScope, two}, two, nil},
		"zero key":               {[]httplock.KeyFunc{noKey, two}, two, nil},
		"invalid":                {[]httplock.KeyFunc{fails(httplock.ErrKeyInvalid), two}, nil, httplock.ErrKeyInvalid},
		"no route":               {[]httplock.KeyFunc{fails(httplock.ErrNoRoute), two}, nil, httplock.ErrNoRoute},
		"own error":              {[]httplock.KeyFunc{fails(own), two}, nil, own},
		"no key, own error":      {[]httplock.KeyFunc{noKey, fails(own)}, nil, own},
		"none, first no scope":   {[]httplock.KeyFunc{noScope, noKey}, nil, httplock.ErrScopeRequired},
		"none, first no key":     {[]httplock.KeyFunc{lacking, noScope}, nil, httplock.ErrKeyRequired},
		"none, first a zero key": {[]httplock.KeyFunc{noKey, noScope}, nil, httplock.ErrKeyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := httplock.FirstOf(test.fns...)(request(nil))
			var want httplock.Key
			if test.key != nil {
				want, _ = test.key(nil)
			}
			if !got.Equal(want) || !errors.Is(err, test.want) {
				t.Errorf("key %v, error %v, want %v, %v", got, err, want, test.want)
			}
			if errors.Is(test.want, httplock.ErrScopeRequired) && errors.Is(err, httplock.ErrKeyRequired) {
				t.Errorf("error %v is both", err)
			}
		})
	}
}
