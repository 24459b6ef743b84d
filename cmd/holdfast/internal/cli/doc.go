// Package cli is the command line of holdfast: its grammar, and one file for each command.
//
// A command that runs another program is executed twice, see package supervise: in the parent, where it checks its
// arguments, and in the supervisor, where it takes the lock. All other commands are executed once.
package cli
