package cli

import "context"

// await calls a function that may not return when ctx ends, and returns its results. If ctx ends first, await returns the
// cause, and the function continues: the caller must end the process soon.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type results struct {
		value T
		err   error
	}
	ended := make(chan results, 1)
	go func() {
		value, err := call()
		ended <- results{value, err}
	}()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
