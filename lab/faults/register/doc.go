// Package register is the resource behind the locks: it lies outside of Redis, and its fenced side refuses tokens
// smaller than one that it has seen. Its other side takes everything, and shows what the tokens are for.
package register
