package rpc_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

func encode(t testing.TB, a *rpc.Answer, limit int) []byte {
	t.Helper()
	value, err := a.Encode(limit)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestRecord: message and metadata are what they were, but for what is of one call.
func TestRecord(t *testing.T) {
	t.Parallel()
	kept := map[string][]string{"x-order": {"1", "2"}, "x-bin": {"\x00\xff"}, "x-empty": {""}}
	header := maps.Clone(kept)
	for _, name := range []string{
		"grpc-status", "Connect-Timeout-Ms", "content-type", ":path", "authorization", "Set-Cookie", "traceparent", "X-Session-Token",
		"date", "idempotency-replayed", "accept-encoding", "trailer-x",
	} {
		header[name] = []string{"1"}
	}
	m := order(t, `id: "1" part { count: 2 }`)
	got, err := rpc.Decode(encode(t, &rpc.Answer{Message: m, Header: header, Trailer: header}, 1<<20))
	if err != nil || got.Status != nil || !proto.Equal(got.Message.(proto.Message), m) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, found := range []map[string][]string{got.Header, got.Trailer} {
		if !maps.EqualFunc(found, kept, slices.Equal[[]string]) {
			t.Errorf("metadata %q", found)
		}
	}
	split := map[string][]string{"x-note": {"a\r\nset-cookie: b\x00"}}
	got, err = rpc.Decode(encode(t, &rpc.Answer{Message: m, Header: split, Trailer: split}, 1<<20))
	if want := []string{"a  set-cookie: b "}; err != nil || !slices.Equal(got.Header["x-note"], want) || !slices.Equal(got.Trailer["x-note"], want) {
		t.Errorf("a value that would end its field: %+v, %v", got, err)
	}
	if got, err := rpc.Decode(encode(t, &rpc.Answer{Message: order(t, "")}, 1<<20)); err != nil || got.Message == nil {
		t.Errorf("an empty message: %+v, %v", got, err)
	}
	if value := encode(t, &rpc.Answer{Message: "no message"}, 1<<20); value != nil {
		t.Errorf("recorded %q", value)
	}
}

// TestErrorRecord: an error is an answer, with its details. Of one that is too large, what it means is kept.
func TestErrorRecord(t *testing.T) {
	t.Parallel()
	detail, err := anypb.New(&errdetails.ErrorInfo{Reason: strings.Repeat("r", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	s := &spb.Status{Code: 5, Message: "no such order", Details: []*anypb.Any{detail, {TypeUrl: "x/no.Type", Value: []byte("y")}}}
	got, err := rpc.Decode(encode(t, &rpc.Answer{Status: s, Header: map[string][]string{"x": {"y"}}}, 1<<20))
	if err != nil || !proto.Equal(got.Status, s) || got.Header["x"] == nil {
		t.Errorf("%+v, %v", got, err)
	}
	broken := &spb.Status{Code: 5, Message: "no order \xff"}
	if got, err := rpc.Decode(encode(t, &rpc.Answer{Status: broken}, 1<<20)); err != nil || got.Status.GetMessage() != "no order \uFFFD" {
		t.Errorf("a text that is not UTF-8: %+v, %v", got, err)
	}
	got, err = rpc.Decode(encode(t, &rpc.Answer{Status: s, Header: map[string][]string{"x": {"y"}}}, 500))
	if err != nil || !proto.Equal(got.Status, &spb.Status{Code: 5, Message: "no such order"}) || len(got.Header) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	long := &spb.Status{Code: 5, Message: strings.Repeat("ä", 1000), Details: s.Details}
	value := encode(t, &rpc.Answer{Status: long}, 501)
	got, err = rpc.Decode(value)
	if err != nil || len(value) > 501 || got.Status.GetCode() != 5 || len(got.Status.GetMessage()) < 400 ||
		!strings.HasPrefix(long.Message, got.Status.GetMessage()) {
		t.Errorf("a long text: %d bytes, %+v, %v", len(value), got, err)
	}
}

// TestForeignRecord: what cannot be read is an error and never an empty message.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	name := func(n string) []byte { return append([]byte{0x0a, byte(len(n))}, n...) }
	for text, value := range map[string][]byte{
		"unknown":        append(name("no.Type"), 0x12, 0),
		"cannot be read": append(name("test.Order"), 0x12, 1, 0xff), "\x00cannot be read": {0xff}, "\x01cannot be read": {},
		"\x02cannot be read": name("test.Order")[:5], "\x03cannot be read": {0x1a, 1, 0xff}, "\x04cannot be read": {0x22, 2, 9, 9},
		"\x05cannot be read": append(encode(t, &rpc.Answer{Message: order(t, "")}, 1000), 0x22, 6, 1, 'x', 3, 'a', '\r', '\n'),
	} {
		_, err := rpc.Decode(value)
		text = strings.TrimLeft(text, "\x00\x01\x02\x03\x04\x05")
		if err == nil || text == "unknown" && !strings.Contains(err.Error(), "no.Type") || text != "unknown" && !strings.Contains(err.Error(), text) {
			t.Errorf("%x: %v", value, err)
		}
	}
	// A later version may add fields.
	value := protowire.AppendVarint(protowire.AppendTag(encode(t, &rpc.Answer{Message: wrapperspb.String("x")}, 1000), 99, protowire.VarintType), 1)
	value = protowire.AppendString(protowire.AppendTag(value, 98, protowire.BytesType), "new")
	if got, err := rpc.Decode(value); err != nil || got.Message.(*wrapperspb.StringValue).Value != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	// Whoever can write to Redis can add metadata.
	forged := append(encode(t, &rpc.Answer{Message: wrapperspb.String("x")}, 1000), 0x22, 0x0d)
	forged = append(append(forged, 10), "set-cookie"...)
	if got, err := rpc.Decode(append(forged, 1, 'x')); err != nil || len(got.Header) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	value, _ := (&rpc.Answer{Message: wrapperspb.String("x"), Header: map[string][]string{"a": {"b"}}}).Encode(1000)
	f.Add(value)
	f.Fuzz(func(t *testing.T, value []byte) {
		if a, err := rpc.Decode(value); err == nil && a.Message == nil && a.Status == nil {
			t.Error("neither a message nor an error")
		}
	})
}

var errOther = errors.New("other")
