// Package simulate lets clients, a miniredis and the links between them live through hours in seconds, in the virtual
// time of testing/synctest. It is for volume in what depends on time: no server of it crashes, replicates or evicts.
//
// The tests have the build tag holdfast_simulation, because they take longer than make test should: see make simulate.
package simulate
