// Package suites runs the tests of other projects with guards of holdfast on each of their routes, muxes and jobs, and compares the
// outcome of each test with its outcome without guards. A copy of the pinned module gets one line of source at the place where
// all routes are registered, where a user would write Use(guard). Each request, task or run has a key of its own, so the guards run,
// record and answer, and refuse none.
package suites
