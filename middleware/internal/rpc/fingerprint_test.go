package rpc_test

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

const place = "/test.Orders/Place"

func sum(m proto.Message, ignored ...string) string {
	return string(rpc.Fingerprint(nil, place, m, ignored...))
}

// TestSameRequests: what builds and languages may do differently does not count.
func TestSameRequests(t *testing.T) {
	t.Parallel()
	const text = `id: "1" count: -2 part { id: "2" } tags: "a" tags: "b" notes { key: 1 value: "x" } notes { key: -2 value: "y" }
		any { [type.googleapis.com/test.Order] { id: "3" notes { key: 7 value: "z" } } }`
	m := order(t, text)
	want := sum(m)
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	json, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // maps have no order
		read := order(t, "")
		if err := proto.Unmarshal(wire, read); err != nil || sum(read) != want {
			t.Errorf("from its bytes: %v", err)
		}
		if err := protojson.Unmarshal(json, read); err != nil || sum(read) != want {
			t.Errorf("from JSON: %v", err)
		}
	}
	reversed := order(t, "")
	if err := proto.Unmarshal(append(fieldsReversed(t, m), 0xa0, 0x1f, 0x01), reversed); err != nil || sum(reversed) != want {
		t.Errorf("fields in another order, and an unknown one: %v", err)
	}
	url := order(t, strings.ReplaceAll(text, "type.googleapis.com/", "types.example.com/"))
	if sum(url) != want {
		t.Error("another host in the URL of a type")
	}
	if sum(order(t, "count: 0 tags: []")) != sum(order(t, "")) {
		t.Error("a default that was set")
	}
	old := message(t, orders, "OldOrder", "")
	if err := proto.Unmarshal(wire, old); err != nil || sum(old) != sum(order(t, `id: "1"`)) {
		t.Errorf("unknown fields of a newer build count: %v", err)
	}
}

// fieldsReversed marshals the fields of a message, the last one first.
func fieldsReversed(t *testing.T, m proto.Message) (wire []byte) {
	t.Helper()
	var parts [][]byte
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		one := m.ProtoReflect().New()
		one.Set(fd, v)
		part, err := proto.Marshal(one.Interface())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		return true
	})
	for i := range parts {
		wire = append(wire, parts[len(parts)-1-i]...)
	}
	return wire
}

// TestOtherRequests: no two of these have the same fingerprint.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, text := range []string{
		``, `id: "1"`, `id: "2"`, `id: "12"`, `raw: "1"`, `count: 1`, `count: -1`, `size: 1`, `kind: TEA`, `gift: true`, `price: 1`,
		`price: -0.0`, `price: nan`, `price: inf`, `explicit: 0`, `explicit: 1`,
		`part {}`, `part { id: "1" }`, `part { part {} }`, `part { part { id: "1" } }`, `parts {}`, `parts {} parts {}`,
		`parts { id: "1" } parts {}`, `parts {} parts { id: "1" }`,
		`tags: ""`, `tags: "" tags: ""`, `tags: "a" tags: "b"`, `tags: "b" tags: "a"`, `tags: "ab"`, `tags: "a"`,
		`notes { key: 1 value: "a" }`, `notes { key: 2 value: "a" }`, `notes { key: 1 value: "b" }`,
		`notes { key: 1 value: "a" } notes { key: 2 value: "b" }`, `notes { key: 1 value: "b" } notes { key: 2 value: "a" }`,
		`any {}`, `any { [x/test.Order] {} }`, `any { [x/test.OldOrder] {} }`, `any { [x/test.Order] { id: "1" } }`,
		`any { type_url: "x/no.Type" }`, `any { type_url: "x/no.Type" value: "1" }`, `any { type_url: "x/test.Order" value: "broken" }`,
	} {
		got := sum(order(t, text))
		if seen[got] != "" {
			t.Errorf("%q is as %q", text, seen[got])
		}
		seen[got] = text
	}
	m := order(t, `id: "1"`)
	if sum(m) == string(rpc.Fingerprint(nil, "/test.Orders/PlaceBack", m)) {
		t.Error("the method does not count")
	}
	if sum(m) == string(rpc.Fingerprint([]byte("a secret of sixteen bytes"), place, m)) {
		t.Error("the secret does not count")
	}
	one, two := structpb.NewNumberValue(math.NaN()), structpb.NewNumberValue(math.Float64frombits(0x7ff8000000000123))
	if sum(one) != sum(two) {
		t.Error("two NaNs differ")
	}
}

func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	a, b := order(t, `id: "1" part { id: "2" count: 3 } parts { id: "4" } any { [x/test.Order] { id: "5" } }`),
		order(t, `id: "9" part { id: "9" count: 3 } parts { id: "9" } any { [x/test.Order] { id: "9" } }`)
	if sum(a, "id", "part.id", "parts.id", "any.id") != sum(b, "id", "part.id", "parts.id", "any.id") {
		t.Error("ignored fields count")
	}
	if sum(a, "id", "part.id", "parts.id") == sum(b, "id", "part.id", "parts.id") {
		t.Error("other fields do not count")
	}
	c, d := order(t, `part { id: "2" count: 3 }`), order(t, `part { id: "9" count: 4 }`)
	for _, paths := range [][]string{{"part", "part.id"}, {"part.id", "part"}, {"part.id", "part.part.id", "part.count"}} {
		if sum(c, paths...) != sum(d, paths...) {
			t.Errorf("%q count", paths)
		}
	}
}

// TestDeepRequest: a request that is nested deeply costs no more than a few times its size, with ignored fields too. It is not parallel,
// because it counts what the process allocates.
func TestDeepRequest(t *testing.T) {
	m := order(t, "")
	part := m.ProtoReflect().Descriptor().Fields().ByName("part")
	const levels = 5000
	for range levels {
		outer := order(t, "").ProtoReflect()
		outer.Set(part, protoreflect.ValueOfMessage(m.ProtoReflect()))
		m = outer.Interface()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sum(m, "part.id", "part.part.id", "id")
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / levels; each > 2000 {
		t.Errorf("%d bytes for each level", each)
	}
}

// TestPackedRequest: the fingerprint of many small numbers, each of which takes a byte of the request, needs no memory for each. It is
// not parallel, because it counts what the process allocates.
func TestPackedRequest(t *testing.T) {
	m := &descriptorpb.SourceCodeInfo_Location{Path: make([]int32, 1<<20), LeadingComments: proto.String(strings.Repeat("x", 1<<20))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sum(m)
	runtime.ReadMemStats(&after)
	if most := uint64(64 << 10); after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("allocated %d bytes, want at most %d", after.TotalAlloc-before.TotalAlloc, most)
	}
}

// TestLongValues: where a value ends counts, however the walk is cut.
func TestLongValues(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range 3000 {
		seen[sum(order(t, `tags: "`+strings.Repeat("s", n)+`" tags: "s"`))]++
	}
	if len(seen) != 3000 {
		t.Errorf("%d fingerprints of 3000 requests", len(seen))
	}
}

// TestGroup: a group of proto2 counts as a message.
func TestGroup(t *testing.T) {
	t.Parallel()
	one, two := message(t, legacy, "Order", `Item { id: "1" }`), message(t, legacy, "Order", `Item { id: "2" }`)
	if sum(one) == sum(two) || sum(one) == sum(message(t, legacy, "Order", ``)) {
		t.Error("a group does not count")
	}
}

// TestNestedAny: a request of Any within Any costs no more than a few times its size.
func TestNestedAny(t *testing.T) {
	t.Parallel()
	a := new(anypb.Any)
	for range 200 {
		outer, err := anypb.New(a)
		if err != nil {
			t.Fatal(err)
		}
		a = outer
	}
	a.Value = append(a.Value, bytes.Repeat([]byte{0x12, 0x00}, 1<<20)...)
	began := time.Now()
	sum(a)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if sum(wrapperspb.String("a")) == sum(wrapperspb.String("b")) {
		t.Error("equal")
	}
}
