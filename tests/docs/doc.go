// Package docs tests the pages: their Go code compiles, their links resolve, the paths, commands and log lines that they name exist,
// the commands for operators and the Redis user of docs/keys-and-rights.md work on a real server, and its table of keys is complete.
//
// A block of Go is checked in one of these ways, the first that fits:
//
//   - After a line "<!-- fragment -->" it is not checked.
//   - A block that begins with a package clause is a whole file.
//   - Any other block is a fragment: functions with a name, types and imports at its left margin go to the top of a file, and
//     all other lines into the body of a function that returns an error. The file sees what testdata declares (ctx, rdb,
//     locks and so on): testdata/http.go for docs/http.md, testdata/names.go for pages without such a file. The usual packages
//     need no import. Variables and imports may be unused.
//
// A line "<!-- module: lab/bench -->" before a block compiles it in that module of this repository, for what needs its
// dependencies. The block is skipped if they are not on this machine, because tests download nothing.
package docs
