// Package fastpath compares the fast path of a Lua script with its slow path, for tests.
//
// A fast path is a file *_fast.lua. It comes first in a script and answers the most frequent case without functions
// and tables. In all other cases it does nothing, and the rest of the script decides: the slow path. Where the fast path
// answers, it must do exactly what the slow path would have done.
//
// [Compare] makes random states in a real Redis server, and runs three scripts on copies of each state: the whole script,
// the slow path alone and the fast path alone.
//
//	go test ./core/internal/script -run FastPaths -fastpath.states 100000
package fastpath
