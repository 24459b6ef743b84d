// Package history records what happens in a run, in lines of JSON, so that a run can be checked again without
// repeating it.
package history
