package lockconformance

import (
	"fmt"
	"sync"
)

// room is what a lock protects: one may be inside alone, or any number of those who share. It keeps no one out, it
// notices who should not be there.
type room struct {
	mu      sync.Mutex
	alone   int   // who should be alone
	sharing int   // who share
	newest  int64 // greatest token that was inside
	last    int64 // token of the last one who came in alone
}

// enter comes in with the token of a grant. An error tells what is wrong with that; leave in any case.
func (r *room) enter(shared bool, token int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone, sharing, newest, last := r.alone, r.sharing, r.newest, r.last
	if shared {
		r.sharing++
	} else {
		r.alone++
		r.last = token
	}
	r.newest = max(r.newest, token)
	switch {
	case alone > 0 || sharing > 0 && !shared:
		return fmt.Errorf("met %d who hold the lock alone and %d who share it", alone, sharing)
	case shared && token <= last: // those who share come in together, so in any order
		return fmt.Errorf("token %d shares after %d", token, last)
	case !shared && token <= newest:
		return fmt.Errorf("token %d after %d", token, newest)
	}
	return nil
}

func (r *room) leave(shared bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shared {
		r.sharing--
	} else {
		r.alone--
	}
}
