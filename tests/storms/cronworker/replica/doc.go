// The command replica carries out an order of a test, see package cronworker.
package main
