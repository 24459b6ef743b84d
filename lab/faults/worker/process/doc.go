// The command process is a worker, see package worker. It is built with a clock that can be set.
package main
