// Package round runs workers, servers and the nemesis together, and checks what they have done. It is a test, since
// that is what starts and ends servers: see TestFaults and its flags.
package round
