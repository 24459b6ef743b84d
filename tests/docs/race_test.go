//go:build race

package docs_test

// underRace tells that the race detector makes type checking cost many times what it does.
const underRace = true
