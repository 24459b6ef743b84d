// Verdict reads what "go test -json" says, and prints in a few lines what was skipped and why, what failed, and whether
// all tests passed. Its exit status is 1 if they did not.
//
//	go -C tools run ./verdict tests.json
package main
