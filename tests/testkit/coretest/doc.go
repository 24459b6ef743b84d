// Package coretest is what the tests of core have in common: clients, locks and leases that must be had, records of every
// state, strategies by name, workers in processes of their own, and what has to be true afterwards. It is for the tests of
// this repository and no API.
package coretest
