// Package simulate lets clients, servers and the links between them live through hours in seconds, in the virtual time of
// testing/synctest. It is for volume in what depends on time: leases, and the clocks of servers. Each server is a miniredis,
// alone or one of a Redlock. It may forget all, and has a wall clock that is set. It does not replicate or evict.
//
// The tests have the build tag holdfast_simulation, because they take longer than make test should: see make -C lab simulate.
package simulate
