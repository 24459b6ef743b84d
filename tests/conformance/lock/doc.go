// Package lockconformance holds the tests that every strategy of holdfast must pass, whatever it is made of, alone and
// against every other strategy that it shares names with. A strategy's own tests call [Run] with a [Subject] and add
// what is particular to it.
//
// Each test starts its own servers, stands processes in front of them (a process here is a client of its own,
// with its own connections) and breaks what the test is about. What must not happen is checked from the
// outside only: by whether another process gets the lock, and when. A subject may live on a [Deployment] instead: a
// Sentinel group or a Cluster, of which tests that break nothing share one. What a test does to every server it does
// there to masters and replicas, so none can take over from one that is frozen or killed.
//
// A subject is a pair: the strategy under test, and its rival, which it keeps out and is kept out by. Who holds a
// lock, enters it again, loses it or gives a request up uses the strategy under test; who is refused, waits in line
// or comes next uses the rival. So a pair of two strategies is run both ways round, and each with itself if its
// holders keep each other out.
package lockconformance
