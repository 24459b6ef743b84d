package rpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

type (
	userKey struct{}
	longKey struct{}
)

func newCall(ctx context.Context, m proto.Message, metadata map[string][]string) *rpc.Call {
	c := rpc.NewCall(ctx, place, false)
	c.Message = m
	c.Metadata = func(name string) []string { return metadata[name] }
	c.TLS = func() *tls.ConnectionState { return nil }
	return c
}

// TestKeyErrors is the table of what makes no key.
func TestKeyErrors(t *testing.T) {
	t.Parallel()
	full := order(t, `id: "1" count: 2 kind: TEA raw: "\001\377" price: 1 gift: true part { id: "3" } tags: "a" any {} notes { key: 1 }`)
	long := strings.Repeat("x", 256)
	metadata := map[string][]string{
		"one": {"1"}, "two": {"1", "1"}, "empty": {""}, "long": {long}, "most": {long[1:]}, "control": {"a\nb"}, "utf": {"\xff"}, "null": {"a\x00"},
	}
	ctx := context.WithValue(context.WithValue(t.Context(), userKey{}, "ada"), longKey{}, long)
	for name, test := range map[string]struct {
		fn   rpc.KeyFunc
		want error // nil for a key, errOther for a mistake in the program
	}{
		"method":                   {rpc.ByMethod(), nil},
		"metadata":                 {rpc.ByMetadata("One"), nil},
		"metadata of 255 bytes":    {rpc.ByMetadata("most"), nil},
		"no metadata":              {rpc.ByMetadata("none"), rpc.ErrKeyRequired},
		"empty metadata":           {rpc.ByMetadata("empty"), rpc.ErrKeyInvalid},
		"repeated metadata":        {rpc.ByMetadata("two"), rpc.ErrKeyInvalid},
		"metadata of 256 bytes":    {rpc.ByMetadata("long"), rpc.ErrKeyInvalid},
		"a control character":      {rpc.ByMetadata("control"), rpc.ErrKeyInvalid},
		"a zero byte":              {rpc.ByMetadata("null"), rpc.ErrKeyInvalid},
		"no UTF-8":                 {rpc.ByMetadata("utf"), rpc.ErrKeyInvalid},
		"string field":             {rpc.ByField("id"), nil},
		"number field":             {rpc.ByField("count"), nil},
		"enum field":               {rpc.ByField("kind"), nil},
		"bytes field":              {rpc.ByField("raw"), nil},
		"nested field":             {rpc.ByField("part.id"), nil},
		"field that is not set":    {rpc.ByField("size"), rpc.ErrKeyRequired},
		"nested field, not set":    {rpc.ByField("part.part.id"), rpc.ErrKeyRequired},
		"no such field":            {rpc.ByField("none"), errOther},
		"no such field in another": {rpc.ByField("part.part.none"), errOther},
		"field of no message":      {rpc.ByField("id.id"), errOther},
		"double":                   {rpc.ByField("price"), errOther},
		"bool":                     {rpc.ByField("gift"), errOther},
		"bool that is not set":     {rpc.ByField("part.gift"), errOther},
		"double that is not set":   {rpc.ByField("part.price"), errOther},
		"message":                  {rpc.ByField("part"), errOther},
		"long user":                {rpc.ByContext(longKey{}), errOther},
		"list":                     {rpc.ByField("tags"), errOther},
		"map":                      {rpc.ByField("notes"), errOther},
		"context":                  {rpc.ByContext(userKey{}), nil},
		"no value in the context":  {rpc.ByContext(struct{ x int }{}), rpc.ErrScopeRequired},
		"no peer":                  {rpc.ByPeer(), rpc.ErrScopeRequired},
		"constant":                 {rpc.Constant("x"), nil},
		"joined":                   {rpc.Keys(rpc.ByMethod(), rpc.ByField("id")), nil},
		"joined, one missing":      {rpc.Keys(rpc.ByMethod(), rpc.ByField("size")), rpc.ErrKeyRequired},
		"first of two":             {rpc.FirstOf(rpc.ByField("size"), rpc.ByField("id")), nil},
		"first of none":            {rpc.FirstOf(rpc.ByMetadata("none"), rpc.ByPeer()), rpc.ErrKeyRequired},
		"first is malformed":       {rpc.FirstOf(rpc.ByMetadata("two"), rpc.ByField("id")), rpc.ErrKeyInvalid},
	} {
		key, err := test.fn(newCall(ctx, full, metadata))
		known := errors.Is(err, rpc.ErrKeyRequired) || errors.Is(err, rpc.ErrKeyInvalid) || errors.Is(err, rpc.ErrScopeRequired)
		switch {
		case test.want == nil && (err != nil || key.IsZero()), test.want == errOther && (err == nil || known),
			test.want != nil && test.want != errOther && !errors.Is(err, test.want):
			t.Errorf("%s: %v, %v", name, key, err)
		case err != nil && strings.Contains(err.Error(), long):
			t.Errorf("%s: the text repeats what was sent: %v", name, err)
		}
	}
	if _, err := rpc.ByField("id")(newCall(t.Context(), nil, nil)); err == nil || errors.Is(err, rpc.ErrKeyRequired) {
		t.Errorf("a stream: %v", err)
	}
	if key, err := rpc.ByField("item.id")(newCall(t.Context(), message(t, legacy, "Order", `Item { id: "1" }`), nil)); err != nil || key.IsZero() {
		t.Errorf("a field of a group: %v", err)
	}
}

// TestKeysDiffer: equal values of different sources are different keys.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	c := newCall(context.WithValue(t.Context(), userKey{}, "1"), order(t, `id: "1" count: 1`), map[string][]string{"a": {"1"}, "b": {"1"}})
	seen := make(map[string]int)
	for i, fn := range []rpc.KeyFunc{
		rpc.ByMetadata("a"), rpc.ByMetadata("b"), rpc.ByField("id"), rpc.ByField("count"), rpc.ByContext(userKey{}), rpc.Constant("1"),
		rpc.Keys(rpc.ByMetadata("a"), rpc.ByMetadata("b")), rpc.Keys(rpc.ByMetadata("b"), rpc.ByMetadata("a")), rpc.ByMethod(),
	} {
		key, err := fn(c)
		if err != nil {
			t.Fatal(err)
		}
		if other, found := seen[key.Hash()]; found {
			t.Errorf("keys %d and %d are equal", i, other)
		}
		seen[key.Hash()] = i
	}
}

// TestByPeer: only a verified certificate counts, by its URI or its subject.
func TestByPeer(t *testing.T) {
	t.Parallel()
	uri, err := url.Parse("spiffe://example.org/pay")
	if err != nil {
		t.Fatal(err)
	}
	hash := func(leaf *x509.Certificate, verified bool) string {
		c := newCall(t.Context(), nil, nil)
		c.TLS = func() *tls.ConnectionState {
			state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
			if verified {
				state.VerifiedChains = [][]*x509.Certificate{{leaf}}
			}
			return state
		}
		key, err := rpc.ByPeer()(c)
		if err != nil {
			return fmt.Sprint(errors.Is(err, rpc.ErrScopeRequired))
		}
		return key.Hash()
	}
	named := &x509.Certificate{Subject: pkix.Name{CommonName: "pay"}}
	both := &x509.Certificate{Subject: pkix.Name{CommonName: "pay"}, URIs: []*url.URL{uri}}
	other := &x509.Certificate{Subject: pkix.Name{CommonName: "other"}, URIs: []*url.URL{uri}}
	if hash(named, false) != "true" || hash(&x509.Certificate{}, true) != "true" {
		t.Error("a certificate that is not verified or names nobody makes a key")
	}
	if hash(named, true) == hash(both, true) || hash(both, true) != hash(other, true) {
		t.Error("the URI does not count in place of the subject")
	}
}

func TestInvalidKeyFuncs(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"ByMetadata without name": func() { rpc.ByMetadata("") },
		"ByMetadata of bytes":     func() { rpc.ByMetadata("x-bin") },
		"ByField without path":    func() { rpc.ByField("") },
		"ByField with a hole":     func() { rpc.ByField("a..b") },
		"ByContext of nil":        func() { rpc.ByContext(nil) },
		"Constant without value":  func() { rpc.Constant("") },
		"Keys of none":            func() { rpc.Keys() },
		"FirstOf nil":             func() { rpc.FirstOf(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			make()
		}()
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"/test.Orders/Get": true, "/test.Orders/Place": false, "/test.Orders/PlaceBack": false, "/test.Orders/None": false,
		"/no.Service/Get": false, "": false, "/test.Order/Get": false,
	} {
		for range 2 { // the second time from what it remembers
			if rpc.NoSideEffects(method) != want {
				t.Errorf("%q has side effects: %v", method, want)
			}
		}
	}
	for _, test := range []struct {
		prefix  string
		streams bool
		valid   bool
	}{
		{"/test.Orders/", false, false}, // Watch is a stream
		{"/test.Orders/Place", false, true},
		{"/test.Orders/Watch", false, false},
		{"/test.Orders/Watch", true, true},
		{"/test.Orders/Place", true, false},
		{"/test.Feeds/", true, true},
		{"/test.Feeds/", false, false},
		{"/test.Orders/Plac", false, false},
		{"/test.Order/", false, false}, // a message
		{"/test.Orders", false, false},
		{"test.Orders/Place", false, false},
		{"/", false, false},
		{"", false, false},
		{"//", false, false},
	} {
		if err := rpc.CheckPrefix(test.prefix, test.streams, rpc.Linked(test.prefix)); (err == nil) != test.valid {
			t.Errorf("%q, streams %v: %v", test.prefix, test.streams, err)
		}
	}
	for _, test := range []struct {
		prefix, method string
		want           bool
	}{
		{"/test.Orders/Place", "/test.Orders/Place", true},
		{"/test.Orders/Place", "/test.Orders/PlaceBack", false},
		{"/test.Orders/", "/test.Orders/PlaceBack", true},
		{"/test.Orders/", "/test.OrdersOld/Place", false},
	} {
		if rpc.Matches(test.prefix, test.method) != test.want {
			t.Errorf("%+v", test)
		}
	}
}
