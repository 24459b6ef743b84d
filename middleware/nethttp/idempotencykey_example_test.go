package httplock

import (
	"fmt"
)

// A key in quotes and the same one without are one key.
func Example_parseKeyField() {
	for _, line := range []string{`"order-7"`, `order-7`, `"order 7"`} {
		key, err := parseKeyField(HeaderIdempotencyKey, []string{line})
		fmt.Println(key, err)
	}

	// Output:
	// order-7 <nil>
	// order-7 <nil>
	//  holdfast: invalid key in the request: the header field Idempotency-Key has a space: a key consists of visible ASCII characters without spaces; the quotes around it are optional
}
