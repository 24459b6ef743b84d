package keepalive

import "container/heap"

// entries is a heap of entries, ordered by the next deadline. It keeps the index of each entry in the entry, so that Remove
// and Fix find it. Only container/heap may call the methods.
type entries[H any] []*Entry[H]

var _ heap.Interface = (*entries[struct{}])(nil)

func (h entries[H]) Len() int           { return len(h) }
func (h entries[H]) Less(i, j int) bool { return h[i].validity.next() < h[j].validity.next() }

func (h entries[H]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i+1, j+1
}

func (h *entries[H]) Push(x any) {
	e := x.(*Entry[H])
	*h = append(*h, e)
	e.heapIndex = len(*h)
}

func (h *entries[H]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	e.heapIndex = 0
	old[last] = nil
	*h = old[:last]
	return e
}
