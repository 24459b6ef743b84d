// The command recheck judges histories again. It fails if one of them has violations.
//
//	go run ./faults/recheck history.jsonl
package main
