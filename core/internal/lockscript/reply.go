package lockscript

import (
	"fmt"
	"slices"
	"strconv"
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
		return nil, Unexpected(reply)
	}
	return numbers, nil
}

// Unexpected is the error of a reply that no script gives.
func Unexpected(reply any) error {
	return fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
}

// Milliseconds rounds up, so that nothing is asked of Redis for less time than was meant.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Pairs reads lists of keys and values.
func Pairs(lists ...any) map[string]string {
	all := make(map[string]string)
	for _, list := range lists {
		elements, _ := list.([]any)
		for i := 0; i+1 < len(elements); i += 2 {
			key, _ := elements[i].(string)
			all[key], _ = elements[i+1].(string)
		}
	}
	return all
}

// Number reads what Redis writes for an integer, 0 if it is none.
func Number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
