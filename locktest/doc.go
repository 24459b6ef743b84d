// Package locktest helps to test code that locks. It gives clients of package core on an embedded Redis, and lets a test
// break that Redis: leases are lost, holders crash, Redis goes down.
//
//	func TestSecondOrderIsRefused(t *testing.T) {
//		shop := NewShop(locktest.New(t)) // a *core.Client; it ends with the test
//		…
//	}
//
// [Start] returns the [Server] for tests that need more than one client, or that break something:
//
//   - [Server.NewClient] stands for another process, which holds locks of its own.
//   - [Server.Disconnect] makes a client a crashed process for all others: its locks stay until their TTL has passed.
//   - [Server.Stop] and [Server.Start] make Redis refuse connections and come up again; [Server.Pause] and
//     [Server.Resume] make it silent.
//   - [Server.Flush] loses all data. To lose a single lock, call ForceUnlock of another client. ForceUnlock
//     does not end an attempt of Once.
//   - [Server.Advance] lets leases and records expire.
//
// A test to copy is in examples/testing.
//
// # Virtual time
//
// In a bubble of [testing/synctest] the clients, their leases and the embedded Redis live in virtual time. A test there
// waits for a day of renewals, an expiry or a timeout without taking that time. The result is the same in each run, except
// where goroutines race at one moment of virtual time: call testing/synctest.Wait after [Server.Resume].
//
//	synctest.Test(t, func(t *testing.T) {
//		server := locktest.Start(t)
//		…
//		time.Sleep(31 * time.Second) // leases of crashed holders expire; all others are renewed
//	})
//
// Call [Start] or [New] inside the bubble. Connections are in memory, because virtual time stands still while a goroutine
// waits for a real network. For the same reason, call a handler with net/http/httptest.NewRecorder there, not over a
// httptest.Server, and do not call [Server.Addr].
//
// Outside of a bubble time is real. A holder then notices a loss at its next renewal, a third of its TTL later. Either take a
// short TTL there, such as core.WithTTL(300*time.Millisecond), or test with [Server.Advance] what other processes see.
//
// # What differs from a real Redis
//
// The embedded Redis is [miniredis]: one server in memory, without replicas, Cluster, eviction, memory limit or users with rights.
// [core.WithReplicaAck] finds no replica, and scripts are many times slower, so do not measure with it. Run the same tests on a
// real redis-server now and then. A key of another type gives another error than core.ErrWrongType. Recipes:
// https://github.com/holdfast-go/holdfast/blob/main/docs/testing.md.
//
// [miniredis]: https://github.com/alicebob/miniredis
package locktest
