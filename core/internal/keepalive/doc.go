// Package keepalive renews leases in time, or ends them.
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
// # Terms
//
//   - Validity: until when the holder may rely on the lease. It counts from before the request was sent, less the drift,
//     so it is never later than the expiry in Redis.
//   - Drift: what is taken off every TTL for rounding and for clocks that do not run at the same rate.
//   - Cause: why a lease has ended without its holder.
package keepalive
