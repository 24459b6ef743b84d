// Package conformance holds the tests that every strategy of holdfast must pass, whatever it is made of. A
// strategy's own tests call [Run] with a [Subject] and add what is particular to it.
//
// Each test starts its own servers, stands processes in front of them (a process here is a client of its own,
// with its own connections) and breaks what the test is about. What must not happen is checked from the
// outside only: by whether another process gets the lock, and when.
package conformance
