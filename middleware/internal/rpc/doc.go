// Package rpc is what the guards for gRPC and for Connect share: the key functions, the fingerprint of a request, the record of a
// response, and what a call that does not run is answered. It knows protobuf, but neither of the two libraries. Packages grpclock
// and connectlock document what users see; a record that one of them has written is replayed by the other.
//
// A guard is made by [NewExclusive], [NewOnce] or [NewIdempotent]. [Guard.Do] runs a call. Its handler returns an [Answer], and
// Do returns the Answer of an earlier call, a [Refusal], or neither if the call has run.
package rpc
