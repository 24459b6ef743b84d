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
// The page has no login. It shows names, which can contain a user's data, and owners, which [core.WithOwner] makes
// passwords. Mount it behind a login or on a port that only operators reach. Where a port of localhost is the
// protection, [WithHosts] keeps out other sites that are open in a browser there.
//
// The page changes nothing unless [WithActions] says who may act. Each action needs a POST from the page itself, a
// token against forged requests, and the end of the name, typed by the operator. It is logged, and passed to the
// function of [WithAudit]. Values of records are shown only with [WithValues].
//
// # What a page costs Redis
//
// Each page reads a bounded part. No request sends KEYS or walks over all keys, except a search for a digest, for at
// most two seconds. Open pages are kept up to date by server-sent events; the viewers of one page share its reads, and
// [WithViewers] bounds them.
//
// # As data
//
// Each page is JSON with ?format=json, or if a request accepts application/json and no text/html. New fields may be
// added. The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/inspector.md.
package inspector
