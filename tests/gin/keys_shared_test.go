package gin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSharedKeys: a key of a value is that of package middleware, and a host has the key of requests to it.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	got, err1 := ginlock.NewKey("cart", "7")
	want, err2 := middleware.NewKey("cart", "7")
	if err1 != nil || err2 != nil || !got.Equal(want) {
		t.Errorf("NewKey: errors %v, %v, keys equal %v", err1, err2, got.Equal(want))
	}
	host, err1 := ginlock.HostKey("Shop.Example.COM.:443")
	request, err2 := keyOf(ginlock.ByHost(), "/", "/", func(c *gin.Context) { c.Request.Host = "shop.example.com" })
	if err1 != nil || err2 != nil || !host.Equal(request) {
		t.Errorf("HostKey: errors %v, %v, keys equal %v", err1, err2, host.Equal(request))
	}
}

// TestKeyErrorIsTheDetail: the text of a KeyError begins the detail that the client gets, with the code of its kind.
func TestKeyErrorIsTheDetail(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := func(*gin.Context) (ginlock.Key, error) {
		return ginlock.Key{}, ginlock.KeyError(ginlock.ErrKeyInvalid, "a cart has %d digits", 7)
	}
	a := refused(t, ginlock.Exclusive(locks.Mutex, key))
	a.want(t, http.StatusBadRequest)
	if p := a.problem(t); p.Code != middleware.CodeKeyInvalid || !strings.HasPrefix(p.Detail, "A cart has 7 digits.") {
		t.Errorf("problem %+v", p)
	}
}
