// Package lockdebug shows the locks of this process on an HTTP page, as net/http/pprof shows its goroutines: the leases that the
// process has, and the calls in it that wait. The page asks no Redis, so it also answers while Redis does not.
//
//	mux.Handle("GET /debug/locks", lockdebug.Handler(locks, lockdebug.WithHosts("localhost", "127.0.0.1", "::1")))
//
// The page is plain text. With ?format=json it is one JSON object:
//
//	at       time of the report, by the clock of the process
//	held     leases: name, mode, owner, token, permits, since, valid_until, ttl_ms, renewed
//	waiting  calls that wait: name, mode, owner, since, position, in_redis
//
// The fields are the same as in [core.Held] and [core.Waiting]. Times are in UTC, as RFC 3339 has them. Both lists are
// empty rather than absent. Later versions may add fields.
//
// Names can contain a user's data, and whoever has an owner can enter its lock. So mount the page where pprof is
// mounted, on a port or behind a login that only operators reach. A port of localhost is open to the browsers there:
// see [WithHosts]. The procedure that uses the page is
// https://github.com/holdfast-go/holdfast/blob/main/docs/runbooks.md.
package lockdebug
