// Package lockdebug shows the locks of this process on an HTTP page, as net/http/pprof shows its goroutines: the leases that the
// process has, and the calls in it that wait. The page asks no Redis, so it also answers while Redis does not.
//
//	mux.Handle("GET /debug/locks", lockdebug.Handler(locks))
//
// The page is plain text. With ?format=json it is a [Report].
//
// Names of locks can contain a user's data, and owners are what others could use to enter a lock. So mount the page where pprof
// is mounted: on a port or behind a login that only operators reach.
package lockdebug
