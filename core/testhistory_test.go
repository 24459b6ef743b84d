package core_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// violations lists where sections overlap by Redis's clock, or tokens do not grow in the order of entry.
func violations(sections []section) (found []string) {
	slices.SortFunc(sections, func(a, b section) int { return cmp.Compare(a.From, b.From) })
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

// TestViolationsAreFound shows that the check can fail.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	for name, history := range map[string][]section{
		"overlap":       {{1, 10, 20}, {2, 15, 30}},
		"nested":        {{1, 10, 40}, {2, 15, 30}},
		"same token":    {{1, 10, 20}, {1, 20, 30}},
		"falling token": {{2, 10, 20}, {1, 20, 30}},
	} {
		if len(violations(history)) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
	if found := violations([]section{{2, 20, 30}, {1, 10, 20}}); len(found) != 0 {
		t.Errorf("a sound history was refused: %v", found)
	}
}
