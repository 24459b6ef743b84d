// Package jsonfield finds a scalar in a JSON document that two programs could read in two ways, and refuses it then: for
// keys, of which nobody should be able to make two of one thing, or one of two.
package jsonfield
