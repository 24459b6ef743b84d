package asynqlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlacesKeepTheOrder: a task that came first asks first, also if one that came later asks already.
func TestPlacesKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all places
		var got []int64
		lock := make(chan struct{}) // has a value when it is free
		wait := func(came int64) {
			p := all.take("key", string(rune('a'+came)), came)
			for p.await(t.Context(), time.Hour) {
				ok := false
				p.request(t.Context(), func(ctx context.Context) {
					select {
					case <-lock:
						ok = true
					case <-ctx.Done():
					}
				})
				if ok {
					got = append(got, came)
					break
				}
			}
			p.leave()
		}
		for _, came := range []int64{5, 3, 4, 9, 1} {
			go wait(came)
			synctest.Wait()
		}
		for range 5 {
			lock <- struct{}{}
			synctest.Wait()
		}
		for i, want := range []int64{1, 3, 4, 5, 9} {
			if got[i] != want {
				t.Fatalf("%v", got)
			}
		}
		if len(all.keys) != 0 {
			t.Errorf("left behind: %v", all.keys)
		}
	})
}

// TestPlacesGiveUp: a task that is not the first one until its time is over leaves, and the next one is not held up.
func TestPlacesGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all places
		first, second := all.take("key", "a", 1), all.take("key", "b", 2)
		if second.await(t.Context(), time.Minute) {
			t.Error("the second is the first")
		}
		third := all.take("key", "c", 3)
		second.leave()
		done := make(chan bool)
		go func() { done <- third.await(t.Context(), time.Hour) }()
		synctest.Wait()
		first.leave()
		if !<-done || !all.has("key", "c") || all.has("key", "a") {
			t.Error("the third is not the first now")
		}
		third.leave()
	})
}

// TestPlaceOvertakenBeforeItsRequest: a task was put in front between the turn of another one and its request, which is not made.
func TestPlaceOvertakenBeforeItsRequest(t *testing.T) {
	t.Parallel()
	var all places
	second := all.take("key", "b", 2)
	if !second.await(t.Context(), time.Minute) {
		t.Fatal("it is alone, and not the first")
	}
	first := all.take("key", "a", 1)
	if !second.request(t.Context(), func(context.Context) { t.Error("it asks") }) {
		t.Error("it is not overtaken")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if second.await(over, time.Minute) {
		t.Error("it is the first, though the other one has not left")
	}
	first.leave()
	second.leave()
}
