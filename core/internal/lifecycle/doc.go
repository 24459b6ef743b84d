// Package lifecycle has what goroutines need to end in time: a count of the running operations of a client, pauses that
// can be interrupted, and signals that never block.
//
// A client has these states. [Operations] keeps them:
//
//	open ── BeginClose ──► closing ── the last Finish ──► finished
//	Start: true            Start: false                   Start: false
//	StartInternal: true    StartInternal: true            StartInternal: false
//
// While the client is closing, releases and other internal work of the running operations still start. So Close can
// release what callers hold.
package lifecycle
