// Package permits lets the semaphores of several libraries do the same work under the same faults, on real servers, and
// counts their permits.
//
// A contestant is a semaphore of a library. A play is one fault. In each play, a victim and the others are processes of
// one contestant: the victim reaches Redis through a relay, which loses, keeps and repeats what passes it. A referee counts
// the permits whose holders believe in them. Three things can go wrong:
//
//   - over: more than n holders believe in a permit at once;
//   - short: after all releases, fewer than n permits can be had, until the TTL of a permit has passed;
//   - lost: fewer than n permits can be had after the TTL too.
package permits
