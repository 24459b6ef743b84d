// Installcheck installs the command as users will, with "go install" of a version. Both modules, the root and the command,
// come from a proxy that it makes of the last commit, so it works before either is released. It prints the go.mod that the
// command needs at its tag.
//
//	go -C tools run ./installcheck v0.1.0
package main
