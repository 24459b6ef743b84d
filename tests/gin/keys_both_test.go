package gin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// A gin service and a net/http service exclude each other on what means the same.
func TestSameLockAsNetHTTP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		here         ginlock.KeyFunc
		there        httplock.KeyFunc
		route, muxed string
		path         string
	}{
		"user in either": {ginlock.ByKey("user"), httplock.ByContext(userKey{}), "/", "/", "/"},
		"context":        {ginlock.ByContext(userKey{}), httplock.ByContext(userKey{}), "/", "/", "/"},
		"header":         {ginlock.ByHeader("X-Cart"), httplock.ByHeader("X-Cart"), "/", "/", "/"},
		"cookie":         {ginlock.ByCookie("cart"), httplock.ByCookie("cart"), "/", "/", "/"},
		"query":          {ginlock.ByQuery("cart"), httplock.ByQuery("cart"), "/", "/", "/?cart=7"},
		"constant":       {ginlock.Constant("all"), httplock.Constant("all"), "/", "/", "/"},
		"param":          {ginlock.ByParam("id"), httplock.ByPathValue("id"), "/cart/:id", "/cart/{id}", "/cart/7"},
		"param, escaped": {ginlock.ByParam("id"), httplock.ByPathValue("id"), "/cart/:id", "/cart/{id}", "/cart/a%20b"},
		"rest of a path": {ginlock.ByParam("f"), httplock.ByPathValue("f"), "/f/*f", "/f/{f...}", "/f/a/b"},
		"host":           {ginlock.ByHost(), httplock.ByHost(), "/", "/", "/"},
		"route":          {ginlock.ByRoute(), httplock.ByRoute(), "/orders", "POST /orders", "/orders"},
		"route of ids":   {ginlock.ByRoute(), httplock.ByRoute(), "/cart/:id/:item", "/cart/{cart}/{item}", "/cart/7/8"},
		"route of files": {ginlock.ByRoute(), httplock.ByRoute(), "/f/*f", "/f/{f...}", "/f/a/b"},
		"route of a mux": {ginlock.ByRoute(), httplock.ByRoute(), "/f/*f", "/f/", "/f/a/b/"},
		"route, slash":   {ginlock.ByRoute(), httplock.ByRoute(), "/cart/:id/", "/cart/{id}/{$}", "/cart/7/"},
		"route, escaped": {ginlock.ByRoute(), httplock.ByRoute(), "/caf\u00e9/:id", "/caf\u00e9/{id}", "/caf%C3%A9/7"},
		"route of root":  {ginlock.ByRoute(), httplock.ByRoute(), "/", "/{$}", "/"},
		"longer param":   {ginlock.ByParam("id"), httplock.ByPathValue("id"), "/cart/:id/pay", "/cart/{id}/pay", "/cart/7/pay"},
		"client":         {ginlock.ByClientIP(), httplock.ByClientIP(httplock.RemoteAddr), "/", "/", "/"},
		"joined": {
			ginlock.Keys(ginlock.ByKey("user"), ginlock.ByParam("id")),
			httplock.Keys(httplock.ByContext(userKey{}), httplock.ByPathValue("id")),
			"/cart/:id", "/cart/{id}", "/cart/7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, err := keyOf(test.here, test.route, test.path, func(c *gin.Context) {
				set("ada")(c)
				inRequest("ada")(c)
			})
			if err != nil {
				t.Fatal(err)
			}
			there, err := keyThere(test.there, test.muxed, test.path)
			if err != nil {
				t.Fatal(err)
			}
			if !here.Equal(there) || here.IsZero() {
				t.Error("the keys differ")
			}
		})
	}
}

// keyThere returns what key makes of the same request in a net/http service.
func keyThere(key httplock.KeyFunc, pattern, path string) (got httplock.Key, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { got, err = key(r) })
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header = http.Header{"X-Cart": {"7"}, "Cookie": {"cart=7"}}
	mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), userKey{}, "ada")))
	return got, err
}
