//go:build linux || darwin

package supervise

import (
	"slices"
	"testing"
)

// TestTree: parents come first, and what is left out is left out with all below it.
func TestTree(t *testing.T) {
	t.Parallel()
	children := byParent(map[int]int{2: 1, 3: 2, 4: 3, 5: 1, 6: 5, 7: 99})
	all := tree(1, map[int]bool{5: true}, children)
	if !slices.Equal(all, []int{2, 3, 4}) {
		t.Errorf("found %v", all)
	}
}
