package lockscript

import (
	"fmt"
	"slices"
	"time"
)

// Integers reads a reply that is a list of integers, of one of these lengths.
func Integers(reply any, lengths ...int) ([]int64, error) {
	list, _ := reply.([]any)
	numbers := make([]int64, 0, len(list))
	for _, element := range list {
		if n, ok := element.(int64); ok {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) != len(list) || !slices.Contains(lengths, len(list)) {
		return nil, unexpected(reply)
	}
	return numbers, nil
}

func unexpected(reply any) error {
	return fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
}

// Milliseconds rounds up, so that nothing is asked of Redis for less time than was meant.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
