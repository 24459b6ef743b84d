// Package docs checks the documentation: its tests compile the Go code of README.md and docs/*.md, check and run the
// commands, resolve the links between the pages of this repository, and compare log lines and versions with the source. It
// has no code of its own.
//
// # Commands
//
// Each command in a block of sh, and each call of make, go or a script in backquotes, must name what exists: a target or
// a variable of the Makefile, a package, a test, a flag, a variable that a program reads. Each command in a block must
// also run: .ci/run runs it, directly or in the recipe of a target, or a test of this package runs the block on a real
// Redis and compares its output. What neither does is on a list in commands_test.go, with the reason.
//
// Each block needs a language. tests/integration/fencing runs SQL. A block in any other language is on a list too.
//
// # Go
//
// A block of Go is type-checked in one of these ways, the first that fits:
//
//   - After a line "<!-- fragment -->" it is not checked. Use that for what is not Go, or not meant to compile.
//   - A block that begins with a package clause is a whole file, and must compile as it stands.
//   - Any other block is a fragment. Functions with a name, types and imports at its left margin go to the top of a file,
//     all other lines into the body of a function that returns an error. The file sees the names that testdata declares
//     (ctx, rdb, locks and so on): in testdata/http.go for docs/http.md and its translation, in testdata/names.go for
//     pages without such a file. The usual packages need no import. Variables and imports may be unused.
//
// The blocks of the exercise in CONTRIBUTING.md are tried in their places: its test is run without and with its code.
//
// A line "<!-- module: lab/bench -->" before a block compiles it within that module of this repository, for what needs
// its dependencies. The block is skipped if they are not on this machine, because tests download nothing.
package docs
