package httplock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestDetailNamesWhatIsMissing: the names of parts are told, what a key function says beyond that is not.
func TestDetailNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	strategy := coretest.Unused(t)
	e, err := newExclusive(strategy, Unscoped(), exclusiveSettings())
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]string{
		"header:X-Cart": "The header field X-Cart is missing.", "cookie:session": "The cookie session is missing.",
		"query:cart": "The query parameter cart is missing.", "form:cart": "The form field cart is missing.",
		"path:id": "The path value id is missing.", "json:/order/id": `The JSON value at "/order/id" is missing.`,
		"idempotency-key": "The header field Idempotency-Key is missing.", "tenant": "Tenant is missing.",
		"mine:x": "Mine:x is missing.",
	} {
		err := fmt.Errorf("looked up for ada: %w", missing(part))
		detail := refuseKey(context.Background(), &e.guard, err).Problem().Detail
		if !strings.HasPrefix(detail, want) || strings.Contains(detail, "ada") || !errors.Is(err, ErrKeyRequired) {
			t.Errorf("%s: detail %q, want %q", part, detail, want)
		}
	}
	for _, err := range []error{
		fmt.Errorf("%w: for ada", ErrKeyRequired), fmt.Errorf("%w: for ada", ErrKeyInvalid),
	} {
		if detail := refuseKey(context.Background(), &e.guard, err).Problem().Detail; detail == "" || strings.Contains(detail, "ada") {
			t.Errorf("%v: detail %q", err, detail)
		}
	}
	_, err = NewKey("tenant", "")
	if detail := refuseKey(context.Background(), &e.guard, err).Problem().Detail; !strings.HasPrefix(detail, "Tenant is empty.") {
		t.Errorf("detail %q of an empty value", detail)
	}
}
