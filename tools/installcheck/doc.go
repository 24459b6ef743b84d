// Installcheck proves that the modules in folders can be released with a version of the root: users install the command with
// "go install", and build programs that import the packages. All modules come from a proxy that it makes of the last commit,
// so it works before any of them is released. At the end, one program outside of the repository requires all of them at that
// version, imports each package that it may, and runs the first program of the README against a Redis server.
//
// It writes the go.mod and go.sum that each of them needs at its tag to a folder.
//
//	go -C tools run ./installcheck v0.1.0 ../bin/release
package main
