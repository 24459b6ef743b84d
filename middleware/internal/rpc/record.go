package rpc

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Answer is how a handler ended: with a message or an error.
type Answer struct {
	// Message is what the handler returned without an error. Only a [proto.Message] can be recorded.
	Message any
	// Status is the error that the handler returned; nil if it returned none.
	Status *spb.Status
	// Header and Trailer are what the handler set.
	Header, Trailer map[string][]string
	// Err is the error in the form in which the handler returned it.
	Err error
}

// checked returns an answer whose message is nil if the handler returned the nil of a message's type, and whose error has a text that
// protobuf can have.
func (a *Answer) checked() *Answer {
	if m, ok := a.Message.(proto.Message); ok && !m.ProtoReflect().IsValid() {
		a.Message = nil
	}
	if a.Status != nil && !utf8.ValidString(a.Status.Message) {
		a.Status = proto.Clone(a.Status).(*spb.Status)
		a.Status.Message = strings.ToValidUTF8(a.Status.Message, "\uFFFD")
	}
	return a
}

// The fields of a record, which has the wire format of a protobuf message. Unknown ones are skipped.
const (
	fieldType    protowire.Number = 1 + iota // full name of the message
	fieldMessage                             // its bytes
	fieldStatus                              // a google.rpc.Status
	fieldHeader                              // repeated: a name and its values
	fieldTrailer                             // likewise
)

// encode returns the value of a record, nil for an answer that cannot be recorded. Of an error that is larger than limit, only the
// code and as much of the text as fits are kept: without a value, it would seem to have succeeded.
func (a *Answer) encode(limit int) ([]byte, error) {
	var out []byte
	if a.checked().Status == nil {
		m, ok := a.Message.(proto.Message)
		if !ok {
			return nil, nil
		}
		text, err := proto.Marshal(m)
		if err != nil {
			return nil, err
		}
		out = appendBytes(out, fieldType, []byte(m.ProtoReflect().Descriptor().FullName()))
		out = appendBytes(out, fieldMessage, text)
	} else {
		text, err := proto.Marshal(a.Status)
		if err != nil {
			return nil, err
		}
		out = appendBytes(out, fieldStatus, text)
	}
	out = appendHeader(out, fieldHeader, a.Header)
	out = appendHeader(out, fieldTrailer, a.Trailer)
	switch more := len(out) - limit; {
	case more <= 0 || a.Status == nil:
	case a.Status.Details != nil || a.Header != nil || a.Trailer != nil:
		return (&Answer{Status: &spb.Status{Code: a.Status.Code, Message: a.Status.Message}}).encode(limit)
	case more <= len(a.Status.Message):
		text := strings.ToValidUTF8(a.Status.Message[:len(a.Status.Message)-more], "") // without half a character at its end
		return (&Answer{Status: &spb.Status{Code: a.Status.Code, Message: text}}).encode(limit)
	}
	return out, nil
}

func appendBytes(out []byte, n protowire.Number, text []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, n, protowire.BytesType), text)
}

func appendHeader(out []byte, n protowire.Number, header map[string][]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if unrecorded(name) {
			continue
		}
		entry := protowire.AppendString(nil, strings.ToLower(name))
		for _, value := range header[name] {
			if !binaryValue(name) {
				value = httprecord.FieldValue(value)
			}
			entry = protowire.AppendString(entry, value)
		}
		out = appendBytes(out, n, entry)
	}
	return out
}

// unrecorded reports whether metadata is of one connection, one call or one client, and must not be sent with another call.
func unrecorded(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{":", "grpc-", "connect-", "content-", "accept-", "trailer-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == Replayed || httprecord.Unrecorded(textproto.CanonicalMIMEHeaderKey(name))
}

// binaryValue reports whether metadata has values of any bytes, which are encoded when they are sent.
func binaryValue(name string) bool { return strings.HasSuffix(strings.ToLower(name), "-bin") }

var errRecord = errors.New("holdfast: the recorded response cannot be read")

// A typeError says that this process does not have the type of a recorded response.
type typeError struct{ name protoreflect.FullName }

func (e *typeError) Error() string {
	return fmt.Sprintf("holdfast: the recorded response is a %s, a type that is unknown to this process", e.name)
}

// decode reads a record that encode has written.
func decode(value []byte) (*Answer, error) {
	a := &Answer{Header: map[string][]string{}, Trailer: map[string][]string{}}
	var name protoreflect.FullName
	var message []byte
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return nil, errRecord
		}
		value = value[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
				return nil, errRecord
			}
			value = value[n:]
			continue
		}
		text, n := protowire.ConsumeBytes(value)
		if n < 0 {
			return nil, errRecord
		}
		value = value[n:]
		ok := true
		switch number {
		case fieldType:
			name = protoreflect.FullName(text)
		case fieldMessage:
			message = text
		case fieldStatus:
			a.Status = new(spb.Status)
			ok = proto.Unmarshal(text, a.Status) == nil
		case fieldHeader:
			ok = decodeHeader(a.Header, text)
		case fieldTrailer:
			ok = decodeHeader(a.Trailer, text)
		}
		if !ok {
			return nil, errRecord
		}
	}
	if a.Status != nil {
		return a, nil
	}
	return a, a.build(name, message)
}

// build makes the message of a record.
func (a *Answer) build(name protoreflect.FullName, message []byte) error {
	if name == "" {
		return errRecord
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return &typeError{name}
	}
	m := t.New().Interface()
	if proto.Unmarshal(message, m) != nil {
		return errRecord
	}
	a.Message = m
	return nil
}

func decodeHeader(header map[string][]string, entry []byte) bool {
	name, n := protowire.ConsumeString(entry)
	for n >= 0 && len(entry) > n {
		entry = entry[n:]
		var value string
		if value, n = protowire.ConsumeString(entry); n < 0 || unrecorded(name) { // whoever writes to Redis may have added it
			continue
		}
		if !binaryValue(name) && !httprecord.ValidFieldValue(value) {
			return false
		}
		header[name] = append(header[name], value)
	}
	return n >= 0
}

// text returns an answer for operators: the code, and the message as JSON.
func (a *Answer) text() []byte {
	if a.Status != nil {
		return fmt.Appendf(nil, "%s: %s", codeName(a.Status.Code), a.Status.Message)
	}
	m := a.Message.(proto.Message)
	out := fmt.Appendf(nil, "OK %s ", m.ProtoReflect().Descriptor().FullName())
	return append(out, protojson.Format(m)...)
}
