package shop

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func TestOrderAgainAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shop{
			Locks: locktest.New(t),
			Place: func(context.Context, string) error { return nil },
		}
		if err := s.Order(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		if err := s.Order(t.Context(), "ada"); !errors.Is(err, ErrOrdered) {
			t.Errorf("error %v, want ErrOrdered", err)
		}
		time.Sleep(24 * time.Hour) // virtual
		if err := s.Order(t.Context(), "ada"); err != nil {
			t.Error("refused after a day:", err)
		}
	})
}

func TestFailedOrderMayBeTriedAgain(t *testing.T) {
	broken := errors.New("database is down")
	s := &Shop{
		Locks: newLocks(t),
		Place: func(context.Context, string) error { return broken },
	}
	if err := s.Order(t.Context(), "ada"); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the database", err)
	}
	s.Place = func(context.Context, string) error { return nil }
	if err := s.Order(t.Context(), "ada"); err != nil {
		t.Error("refused after a failure:", err)
	}
}

func TestOneSettlementAtATime(t *testing.T) {
	server := locktest.Start(t)
	other := server.NewClient() // another process
	lease, err := other.Mutex("settlement").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &Shop{
		Locks: server.NewClient(),
		Pay:   func(context.Context) (bool, error) { t.Error("paid"); return false, nil },
	}
	if err := s.Settle(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("error %v, want ErrNotAcquired", err)
	}

	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Pay = func(context.Context) (bool, error) { return false, nil }
	if err := s.Settle(t.Context()); err != nil {
		t.Error("refused although the lock is free:", err)
	}
}

func TestSettlementStopsWhenItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := locktest.Start(t)
		s := &Shop{
			Locks: server.NewClient(),
			Pay: func(ctx context.Context) (bool, error) { // the payments never end
				select {
				case <-time.After(time.Second):
					return true, nil
				case <-ctx.Done():
					return false, context.Cause(ctx)
				}
			},
		}
		settled := make(chan error)
		go func() { settled <- s.Settle(t.Context()) }()
		time.Sleep(time.Minute)

		if _, err := server.NewClient().ForceUnlock(t.Context(), "settlement"); err != nil {
			t.Fatal(err)
		}
		if err := <-settled; !errors.Is(err, core.ErrLeaseLost) {
			t.Errorf("error %v, want ErrLeaseLost", err)
		}
	})
}

func TestSettlementAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := locktest.Start(t)
		crashed := server.NewClient()
		if _, err := crashed.Mutex("settlement").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.Disconnect(crashed)

		s := &Shop{
			Locks: server.NewClient(),
			Pay:   func(context.Context) (bool, error) { return false, nil },
		}
		if err := s.Settle(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("error %v, want ErrNotAcquired", err)
		}
		time.Sleep(30 * time.Second) // the TTL
		if err := s.Settle(t.Context()); err != nil {
			t.Error("refused after the TTL:", err)
		}
	})
}

func TestOrderWhileRedisIsDown(t *testing.T) {
	server := locktest.Start(t)
	s := &Shop{
		Locks: server.NewClient(),
		Place: func(context.Context, string) error { return nil },
	}
	server.Stop()
	if err := s.Order(t.Context(), "ada"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	server.Start()
	if err := s.Order(t.Context(), "ada"); err != nil {
		t.Error("refused although Redis is up again:", err)
	}
}

func TestOrderWhileRedisIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := locktest.Start(t)
		s := &Shop{
			Locks: server.NewClient(),
			Place: func(context.Context, string) error { return nil },
		}
		server.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Order(ctx, "ada"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v, want ErrUnavailable", err)
		}
	})
}

func TestSecondRequestIsRefused(t *testing.T) {
	s := &Shop{
		Locks: locktest.New(t),
		Place: func(context.Context, string) error { return nil },
	}
	handler := s.Handler()
	for _, want := range []int{http.StatusCreated, http.StatusConflict} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
		r.SetBasicAuth("ada", "secret")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
}

func TestRequestStopsWhenItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := locktest.Start(t)
		stopped := make(chan error, 1)
		s := &Shop{
			Locks: server.NewClient(),
			Place: func(ctx context.Context, _ string) error { // the database does not answer
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return ctx.Err()
			},
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
		r.SetBasicAuth("ada", "secret")
		go s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		synctest.Wait() // the handler waits for the database

		server.Flush()
		if err := <-stopped; !errors.Is(err, core.ErrLeaseLost) {
			t.Errorf("error %v, want ErrLeaseLost", err)
		}
	})
}
