// Package simulate lets clients, a miniredis and the links between them live through hours in seconds, in the virtual
// time of testing/synctest. It is for volume in what depends on time: no server of it crashes, replicates or evicts.
//
// The tests need the build tag holdfast_simulation, by which core measures leases by the clock of package time, the
// only one that is virtual.
package simulate
