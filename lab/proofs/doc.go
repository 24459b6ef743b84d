// Proofs runs what shows that the library keeps its promises, at the length that a release needs, and makes the table at the top
// of lab/RESULTS.md. The list is in list.go.
//
//	make -C lab proofs             runs what has no row for the code of HEAD, the shortest first; it can be interrupted and resumed
//	make -C lab proofs ONLY=faults runs the proofs whose names match a regular expression, also those that have failed or shown too little
//	make -C lab proofs-check       lists the rows that are missing or failed, and fails if there are any
//
// Each run leaves a row in rows, which is committed, and its output in logs, which is not.
//
// # Which rows are valid
//
// A row is of the code that it was made with: a hash of the files of the commit, without those that no test depends on: pages,
// pictures, api, .github, and this folder. So a commit that changes only those leaves all rows valid, and so does a rebase. Tests,
// the command and folders of the laboratory count only for the proofs that run them. A row whose command is another one
// now is not valid either. The table names the rows that are of other code.
//
// Proofs run in the working tree, so it must not differ from HEAD in those files, neither before nor after a run.
package main
