// Package fencing tests the SQL of docs/fencing.md and docs/guarantees.md. Its tests take the statements from the pages
// and run them on SQLite, PostgreSQL and MariaDB. It has no code of its own.
//
// The servers come from package databases.
//
// Terms:
//
//   - A resource is what a fencing token guards: a row, or all writes under one lock.
//   - A write is one attempt to change a resource under a token. The resource accepts or refuses it.
//   - A play is a sequence of writes, with what the resource must hold after each.
package fencing
