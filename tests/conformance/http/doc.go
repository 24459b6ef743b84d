// Package httpconformance is the suite that every HTTP adapter has to pass: what becomes of a request behind Exclusive,
// Once and Idempotent must not depend on the framework. Each test runs over HTTP/1.1 and HTTP/2, on real sockets and a
// real Redis, and knows of the adapter no more than [Adapter] says.
//
//	func TestConformance(t *testing.T) {
//		httpconformance.Run(t, httpconformance.Adapter{...})
//	}
//
// The handlers of the suite are net/http's, so what only one framework has is not its concern.
package httpconformance
