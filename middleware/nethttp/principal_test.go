package httplock

import (
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type (
	maskedName   string
	maskedNumber int64
	rawID        [16]byte
	masked       struct{ id int }
	failing      struct{ name string }
)

func (maskedName) String() string                 { return "***" }
func (maskedName) MarshalText() ([]byte, error)   { return []byte("***"), nil }
func (maskedNumber) String() string               { return "***" }
func (maskedNumber) MarshalText() ([]byte, error) { return []byte("***"), nil }
func (masked) String() string                     { return "user ***" }
func (f failing) MarshalText() ([]byte, error)    { return nil, errors.New("no text of " + f.name) }

// TestPrincipals: the text of a value tells it apart, whatever the value says to readers.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	id, name := uuid.New(), "ada"
	for want, values := range map[string][]any{
		"ada":                  {name, maskedName("ada")},
		"7":                    {"7", 7, int8(7), int64(7), uint(7), uint8(7), uintptr(7), maskedNumber(7), big.NewInt(7)},
		"-7":                   {"-7", -7, maskedNumber(-7)},
		"18446744073709551615": {uint64(math.MaxUint64)},
		id.String():            {id, &id, [16]byte(id), rawID(id), id.String()},
		"192.0.2.7":            {netip.MustParseAddr("192.0.2.7")},
	} {
		key := mustKey(t, "context", want)
		for _, value := range values {
			if got, err := PrincipalKey(value); err != nil || !got.Equal(key) {
				t.Errorf("%T: error %v, same key as %q: %v", value, err, want, got.Equal(key))
			}
		}
	}
}

// TestNoPrincipal: nobody is logged in, and all of them would be one user.
func TestNoPrincipal(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		nil, "", maskedName(""), 0, maskedNumber(0), uuid.Nil, &uuid.Nil, (*uuid.UUID)(nil), [16]byte{}, new(big.Int),
	} {
		if key, err := PrincipalKey(value); !errors.Is(err, ErrScopeRequired) || !key.IsZero() {
			t.Errorf("%T: error %v, want ErrScopeRequired", value, err)
		}
	}
}

// TestUnusablePrincipals: a value whose text may be another user's makes no key, and the error tells which type it
// was and what to do, but not what it held.
func TestUnusablePrincipals(t *testing.T) {
	t.Parallel()
	name := "ada"
	for kind, value := range map[string]any{
		"httplock.masked":  masked{7},
		"*httplock.masked": &masked{7},
		"float64":          7.5,
		"bool":             true,
		"*string":          &name,
		"[]uint8":          []byte("sixteen bytes ad"),
		"[20]uint8":        [20]uint8{7},
		"map[string]int":   map[string]int{"ada": 7},
	} {
		_, err := PrincipalKey(value)
		if err == nil || errors.Is(err, ErrScopeRequired) || errors.Is(err, ErrKeyInvalid) {
			t.Errorf("%s: error %v, want one that is the server's own", kind, err)
			continue
		}
		for _, want := range []string{"holdfast: a " + kind + " ", "encoding.TextMarshaler", "ByPrincipal"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q lacks %q", kind, err, want)
			}
		}
	}
	if _, err := PrincipalKey(failing{"ada"}); err == nil || strings.Contains(err.Error(), "ada") {
		t.Errorf("error %v, want one without the text of the value", err)
	}
}
