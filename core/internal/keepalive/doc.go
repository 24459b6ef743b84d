// Package keepalive renews leases in time, or ends them. It also has what that is measured and stopped with: the [Clock] of
// leases, and the [Operations] of a client.
//
// # Leases
//
// A [Renewer] has all leases of a client. Each lease embeds an [Entry], which is live exactly while it is in the heap of
// the Renewer. So Unlock, a loss and Close exclude each other: only one of them can take the entry out.
//
//	Add ──► live ──── Remove, Close ───────────────► not live: its holder releases it
//	         │  ▲
//	         │  └──── renewed, extended
//	         └─────── expired, or found lost ──────► not live: the lease gets its Cause by End, then Lost
//
// A renewal that is answered late meets one of these states too: if its entry is not live any more, the answer has no
// effect.
//
// # The clock
//
// A [Clock] continues while the host is suspended and cannot be set back. Go's monotonic clock stops in a suspend
// (golang.org/issue/24595), so a lease measured with it would look valid after the suspend, although Redis has long granted the
// lock to another owner. The wall clock continues, but NTP and administrators set it.
//
// # The operations of a client
//
// [Operations] counts what is running, so that Close can wait for it:
//
//	open ── BeginClose ──► closing ── the last Finish ──► finished
//	Start: true            Start: false                   Start: false
//	StartInternal: true    StartInternal: true            StartInternal: false
//
// While the client is closing, releases and other internal work of the running operations still start. So Close can
// release what callers hold.
//
// # Terms
//
//   - Validity: until when the holder may rely on the lease. It counts from before the request was sent, less the drift,
//     so it is never later than the expiry in Redis.
//   - Drift: what is taken off every TTL for rounding and for clocks that do not run at the same rate.
//   - Cause: why a lease has ended without its holder.
package keepalive
