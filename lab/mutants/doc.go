// Package mutants puts known bugs into core, guards and sqllock, one at a time, and lets the shortest test that should find each of them
// run against it. A bug that no test finds shows what the tests do not look at.
//
// A mutant is applied by the overlay of the go command: no source is changed.
package mutants
