// The command recheck judges histories again. It fails if one of them has violations.
//
//	go run ./recheck history.jsonl
package main
