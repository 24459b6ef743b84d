// Package fencing tests the SQL of docs/fencing.md and docs/guarantees.md. Its tests take the statements from the pages
// and run them on SQLite, PostgreSQL and MariaDB. It has no code of its own.
//
// SQLite is embedded. The tests start PostgreSQL and MariaDB themselves, on unix sockets in temporary directories, and
// skip those that cannot be had, with the reason. HOLDFAST_DATABASES=required makes that a failure. On Debian,
// "make databases" installs both. Both refuse to run as root. For root the tests run them as another user or, where that
// user cannot execute them, in a user namespace. Where neither is possible they skip them, and say why.
//
// Terms:
//
//   - A resource is what a fencing token guards: a row, or all writes under one lock.
//   - A write is one attempt to change a resource under a token. The resource accepts or refuses it.
//   - A play is a sequence of writes, with what the resource must hold after each.
package fencing
