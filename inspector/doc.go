// Package inspector is a page for operators, to mount in a service: the locks that are held in a Redis, with their holders and
// queues, the records of Once, the jobs of cronlock with their last runs, and what this process holds and waits for.
//
//	page, err := inspector.New(locks)
//	if err != nil {
//		return err
//	}
//	mux.Handle("/debug/holdfast/", operatorsOnly(page)) // any path that ends in a slash; StripPrefix is not needed
//
// # Security
//
// The page shows names of locks and owners of all services that share the Redis and the prefix of the client. Names can
// contain a user's data, and [core.WithOwner] makes an owner a password. So the handler must be mounted behind a login or on a
// port that only operators reach. It has no login of its own. Where a port of localhost is the protection, [WithHosts] keeps other
// sites out that are open in a browser there.
//
// The page changes nothing unless [WithActions] says who may. Then it can force locks, resolve and forget records, and pause,
// resume and run jobs. Each action needs a POST from the page itself, with a token against forged requests, and eight
// characters of its object's name, typed by the operator. It leaves a line in the log, and calls the function of [WithAudit].
//
// Values of records are not shown, see [WithValues]. Answers are never cached. No script or style comes from another server or
// from within a page, and a policy of the answers makes browsers refuse such.
//
// # What a page costs Redis
//
// Each page reads a bounded part: a list one page of [core.Client.Locks], a lock or this process one [core.Client.Inspect]. The pages of schedules read
// the runs of their jobs. No request sends KEYS, or walks over all keys. The only search is that for a digest, for two seconds
// at most, one at a time.
//
// A page that is open is kept up to date by server-sent events. The viewers of one page share its reads. A read follows the one
// before after half a second, or after twenty times as long as that one took, up to five seconds. [WithViewers] bounds the viewers. Without
// JavaScript, a page stays as it was loaded.
//
// # As data
//
// Each page is JSON with ?format=json, or if a request accepts application/json and no text/html. New fields may be added.
package inspector
