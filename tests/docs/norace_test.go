//go:build !race

package docs_test

const underRace = false
