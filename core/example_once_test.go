package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func ExampleOnce_Do() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	order := func(context.Context) ([]byte, error) {
		fmt.Println("placing the order")
		return []byte("order 7"), nil
	}
	for range 2 { // the user is impatient
		placed, err := locks.Once("checkout:user:42").Do(ctx, order)
		fmt.Printf("%s replayed: %v error: %v\n", placed.Value, placed.Replayed, err)
	}
	// Output:
	// placing the order
	// order 7 replayed: false error: <nil>
	// order 7 replayed: true error: <nil>
}

func ExampleOnceValue() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	type rate struct{ EUR, USD float64 }
	fetch := func(context.Context) (rate, error) {
		fmt.Println("fetching the rate")
		return rate{EUR: 1, USD: 1.08}, nil
	}
	for range 2 {
		today, err := core.OnceValue(ctx, locks.Once("rate:2026-01-05"), fetch)
		fmt.Println(today.USD, err)
	}
	// Output:
	// fetching the rate
	// 1.08 <nil>
	// 1.08 <nil>
}

func ExampleOnce_Begin() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	payment := locks.Once("payment:42")

	attempt, err := payment.Begin(ctx)
	if err != nil {
		return // see Begin for the errors
	}
	// Work with attempt.Context(), which ends should the lease be lost. Another process, meanwhile:
	_, err = payment.Begin(ctx)
	fmt.Println("in progress:", errors.Is(err, core.ErrInProgress))

	fmt.Println("completed:", attempt.Complete(ctx, []byte("receipt 9")))
	_, err = payment.Begin(ctx)
	var completed *core.CompletedError
	if errors.As(err, &completed) {
		fmt.Printf("refused: %s\n", completed.Record.Value)
	}
	// Output:
	// in progress: true
	// completed: <nil>
	// refused: receipt 9
}

func ExampleOnce_Forget() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	today := locks.Once("order:user:42")
	place := func(number string) {
		result, _ := today.Do(ctx, func(context.Context) ([]byte, error) { return []byte(number), nil })
		fmt.Printf("%s, replayed: %v\n", result.Value, result.Replayed)
	}

	place("order 7")
	place("order 8")
	seen, _ := today.Peek(ctx)
	_ = today.Forget(ctx, seen) // the order was cancelled
	place("order 9")
	// Output:
	// order 7, replayed: false
	// order 7, replayed: true
	// order 9, replayed: false
}

func ExampleOnce_Resolve() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	transfer := locks.Once("transfer:42", core.WithFailurePolicy(core.HoldFailures))
	send := func(context.Context) ([]byte, error) { return nil, errors.New("the bank did not answer") }

	_, err := transfer.Do(ctx, send)
	fmt.Println(err)
	_, err = transfer.Do(ctx, send)
	fmt.Println("unknown:", errors.Is(err, core.ErrOutcomeUnknown))
	seen, _ := transfer.Peek(ctx)
	fmt.Println("seen:", seen.State)
	// An operator asks the bank: the money has arrived. If the record has changed meanwhile, Resolve returns ErrChanged.
	err = transfer.Resolve(ctx, seen, []byte("receipt 9"))
	fmt.Println("resolved:", err)
	sent, err := transfer.Do(ctx, send)
	fmt.Printf("%s, replayed: %v, error: %v\n", sent.Value, sent.Replayed, err)
	// Output:
	// the bank did not answer
	// unknown: true
	// seen: unknown
	// resolved: <nil>
	// receipt 9, replayed: true, error: <nil>
}

func ExampleWithFailurePolicy() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	transfer := locks.Once("transfer:42", core.WithFailurePolicy(core.HoldFailures))
	send := func(err error) error {
		_, err = transfer.Do(ctx, func(context.Context) ([]byte, error) { return nil, err })
		return err
	}

	fmt.Println(send(errors.New("the bank did not answer"))) // the money may be on its way
	fmt.Println("again:", errors.Is(send(nil), core.ErrOutcomeUnknown))
	seen, _ := transfer.Peek(ctx)
	_ = transfer.Forget(ctx, seen) // an operator has asked the bank: it is not
	fmt.Println("after Forget:", send(nil))
	// Output:
	// the bank did not answer
	// again: true
	// after Forget: <nil>
}
