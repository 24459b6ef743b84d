package httpconformance

import (
	"maps"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Adapter says how to build guards and servers of one framework.
type Adapter struct {
	// Exclusive, Once and Idempotent build a guard or return what is wrong with the arguments. For Idempotent the key is
	// the scope.
	Exclusive        func(strategy core.Strategy, key Key, opts ...httplock.Option) (Guard, error)
	Once, Idempotent func(client *core.Client, key Key, opts ...httplock.Option) (Guard, error)
	// Handler routes requests.
	Handler func(routes ...Route) http.Handler
	// Buffers is true if a handler's response is sent as a whole when the handler has returned: nothing can be flushed or taken over
	// while it runs, and an empty 200 means that the handler has not answered.
	Buffers bool
	// Lacks has the names of tests that need what the framework does not have, and why it does not.
	Lacks map[string]string
	// OneProtocol is true if HTTP/1.1 suffices, because the guards belong to an adapter that is tested with both protocols.
	// With [testkit.Long], the suite runs over both all the same.
	OneProtocol bool
}

// Guard is what an adapter has built, of whatever type its Handler knows.
type Guard any

// Route is a handler and the guards in front of it, the outermost first.
type Route struct {
	// Path begins with a slash and has a wildcard "{id}". All methods are routed.
	Path    string
	Guards  []Guard
	Handler http.Handler
}

// Key is a key function that all adapters have: see [Key.Func].
type Key int

const (
	// ByUser is the header field X-User.
	ByUser Key = iota
	// ByRoute is the method and the route, joined with X-User.
	ByRoute
	// ByID is X-User, joined with the resource of the path value id.
	ByID
	// ByPrincipal is the value in the request's context at [PrincipalKey].
	ByPrincipal
	// ByHost is the host, joined with X-User.
	ByHost
	// ByForm, ByQuery, ByCookie and ByJSON are the value named voucher in one place, joined with X-User.
	ByForm
	ByQuery
	ByCookie
	ByJSON
	// ByNestedForm and ByNestedJSON are the voucher in the order of the form and of the JSON document, joined with X-User.
	ByNestedForm
	ByNestedJSON
	// ByFormOrQuery is ByForm, or else ByQuery.
	ByFormOrQuery
)

// Func returns the function.
func (k Key) Func() httplock.KeyFunc {
	user := httplock.ByHeader("X-User")
	switch k {
	case ByUser:
		return user
	case ByRoute:
		return httplock.Keys(httplock.ByRoute(), user)
	case ByID:
		return httplock.Keys(user, httplock.ByPathValue("id"))
	case ByPrincipal:
		return httplock.ByContext(PrincipalKey{})
	case ByHost:
		return httplock.Keys(httplock.ByHost(), user)
	case ByForm:
		return httplock.Keys(user, httplock.ByForm("voucher"))
	case ByQuery:
		return httplock.Keys(user, httplock.ByQuery("voucher"))
	case ByCookie:
		return httplock.Keys(user, httplock.ByCookie("voucher"))
	case ByJSON:
		return httplock.Keys(user, httplock.ByJSON("/voucher"))
	case ByNestedForm:
		return httplock.Keys(user, httplock.ByForm("order[voucher]"))
	case ByNestedJSON:
		return httplock.Keys(user, httplock.ByJSON("/order/voucher"))
	case ByFormOrQuery:
		return httplock.FirstOf(ByForm.Func(), ByQuery.Func())
	}
	return nil
}

// PrincipalKey is where the context of a request has who it comes from.
type PrincipalKey struct{}

// suite is what the tests of one protocol share.
type suite struct {
	Adapter
	http2 bool
	redis *testkit.Server
	locks *core.Client
}

type tests map[string]func(*testing.T, *suite)

// Run runs the suite, usually over both protocols, as parallel subtests of t. It makes t itself parallel at its end.
func Run(t *testing.T, a Adapter) {
	all := tests{}
	for _, group := range []tests{
		onceTests, verdictTests, endingTests, waitingTests, disconnectTests, outageTests, reuseTests, requestTests,
		writerTests, nestingTests, clientTests, retryAfterTests, secrecyTests, leaseTests, loggingTests, operatorTests, paymentTests,
		routeTests, placeTests, multipartTests, readInFrontTests, detailTests,
		unansweredTests, refusalTests, panicTests, bodyTests, eventTests, answerTimeTests, streamTests, knownTests, recoveredTests, textTests,
	} {
		maps.Copy(all, group)
	}
	for protocol, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		if http2 && a.OneProtocol && !testkit.Long() {
			continue
		}
		t.Run(protocol, func(t *testing.T) {
			redis := testkit.Start(t)
			s := &suite{Adapter: a, http2: http2, redis: redis, locks: newLocks(t, redis.Client())}
			// It takes all there is of a small machine, so it comes alone.
			t.Run("OnceRunsOnceOnThreeInstances", func(t *testing.T) { testThreeInstances(t, s) })
			t.Parallel()
			for name, test := range all {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if why, lacks := a.Lacks[name]; lacks {
						t.Skip(why)
					}
					test(t, s)
				})
			}
		})
	}
	for name, test := range buildTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &suite{Adapter: a})
		})
	}
	t.Parallel() // not before, because some of it comes alone
}
