package otellock

import "strings"

// otherFamily is the family of names without a separator. Conventions of OpenTelemetry write _OTHER for the rest.
const otherFamily = "_OTHER"

// Prefix returns a function for [WithFamily] that keeps the text before the first separator: with ":", the family of
// "order:42" is "order". A name without the separator is in the family "_OTHER", and so are all names if the separator
// is empty, because such a name may be one of very many.
func Prefix(separator string) func(name string) string {
	return func(name string) string {
		family, _, found := strings.Cut(name, separator)
		if !found || family == "" {
			return otherFamily
		}
		return family
	}
}
