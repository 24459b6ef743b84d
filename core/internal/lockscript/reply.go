package lockscript

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Integers returns a reply that is a list of integers, of one of these lengths. It returns the error of Unexpected for any other
// reply.
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

// Refused returns the integers of a reply, as Integers does, and the owner that follows them: the holder in the reply to a
// request that was refused. Without an owner it returns "".
func Refused(reply any, lengths ...int) (numbers []int64, holder string, err error) {
	if list, _ := reply.([]any); len(list) > 0 {
		if owner, ok := list[len(list)-1].(string); ok {
			reply, holder = list[:len(list)-1], owner
		}
	}
	numbers, err = Integers(reply, lengths...)
	return numbers, holder, err
}

// Unexpected returns the error for a reply that no script returns: the server is not a Redis that this package knows.
func Unexpected(reply any) error {
	return fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
}

// Milliseconds returns d in milliseconds, rounded up. Why up: no TTL in Redis may be shorter than what was requested.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Pairs returns the fields of lists of alternating names and values. It ignores what is not a list, and values that are no
// strings count as "". It never returns nil.
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

// Number returns the integer that text has in decimal digits. It returns 0 if text is no integer.
func Number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
