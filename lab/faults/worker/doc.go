// Package worker is a process that locks, works under its locks, and tells of every call in lines of JSON, see package
// history. It is what gets killed and stopped, so nothing of it may live in the process that judges.
package worker
