package httpguard_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// A key in quotes and the same one without are one key.
func ExampleParseKeyField() {
	for _, line := range []string{`"order-7"`, `order-7`, `"order 7"`} {
		key, err := httpguard.ParseKeyField(httpguard.HeaderIdempotencyKey, []string{line})
		fmt.Println(key, err)
	}

	// Output:
	// order-7 <nil>
	// order-7 <nil>
	//  holdfast: invalid key in the request: the header field Idempotency-Key has a space: a key consists of visible ASCII characters without spaces; the quotes around it are optional
}
