package coretest

import (
	"cmp"
	"fmt"
	"slices"
)

// Violations lists where sections overlap by Redis's clock, or tokens do not grow in the order of entry.
func Violations(sections []Section) (found []string) {
	slices.SortFunc(sections, func(a, b Section) int { return cmp.Compare(a.From, b.From) })
	for i := 1; i < len(sections); i++ {
		before, after := sections[i-1], sections[i]
		if after.From < before.To {
			found = append(found, fmt.Sprintf("sections overlap: %+v and %+v", before, after))
		}
		if after.Token <= before.Token {
			found = append(found, fmt.Sprintf("token %d came after %d", after.Token, before.Token))
		}
	}
	return found
}
