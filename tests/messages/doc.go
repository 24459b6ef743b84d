// Package messages tests the recipes of examples/messages against real brokers. A consumer is a process of its own that dies, loses
// its broker or its Redis, or is slow, as the message says that it handles. What it does is counted in PostgreSQL. Results are in
// RESULTS.md.
package messages
