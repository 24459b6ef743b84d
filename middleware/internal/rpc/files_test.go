package rpc_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/anypb"
)

// orders is the file of the tests, with a newer and an older build of one message.
var orders = file(`
	name: "orders.proto" package: "test" syntax: "proto3" dependency: "google/protobuf/any.proto"
	message_type {
		name: "Order"
		field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "count" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
		field { name: "size" number: 3 type: TYPE_UINT64 label: LABEL_OPTIONAL }
		field { name: "kind" number: 4 type: TYPE_ENUM type_name: ".test.Kind" label: LABEL_OPTIONAL }
		field { name: "raw" number: 5 type: TYPE_BYTES label: LABEL_OPTIONAL }
		field { name: "price" number: 6 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
		field { name: "gift" number: 7 type: TYPE_BOOL label: LABEL_OPTIONAL }
		field { name: "part" number: 8 type: TYPE_MESSAGE type_name: ".test.Order" label: LABEL_OPTIONAL }
		field { name: "tags" number: 9 type: TYPE_STRING label: LABEL_REPEATED }
		field { name: "any" number: 10 type: TYPE_MESSAGE type_name: ".google.protobuf.Any" label: LABEL_OPTIONAL }
		field { name: "notes" number: 11 type: TYPE_MESSAGE type_name: ".test.Order.NotesEntry" label: LABEL_REPEATED }
		field { name: "parts" number: 12 type: TYPE_MESSAGE type_name: ".test.Order" label: LABEL_REPEATED }
		field { name: "explicit" number: 13 type: TYPE_INT32 label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
		oneof_decl { name: "_explicit" }
		nested_type {
			name: "NotesEntry" options { map_entry: true }
			field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
			field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		}
	}
	message_type {
		name: "OldOrder"
		field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
	}
	enum_type { name: "Kind" value { name: "NONE" number: 0 } value { name: "TEA" number: 1 } }
	service {
		name: "Orders"
		method { name: "Place" input_type: ".test.Order" output_type: ".test.Order" }
		method { name: "PlaceBack" input_type: ".test.Order" output_type: ".test.Order" options { idempotency_level: IDEMPOTENT } }
		method { name: "Get" input_type: ".test.Order" output_type: ".test.Order" options { idempotency_level: NO_SIDE_EFFECTS } }
		method { name: "Watch" input_type: ".test.Order" output_type: ".test.Order" server_streaming: true }
	}
	service {
		name: "Feeds"
		method { name: "Send" input_type: ".test.Order" output_type: ".test.Order" client_streaming: true }
	}`)

// legacy has a group, as proto2 does.
var legacy = file(`
	name: "legacy.proto" package: "legacy" syntax: "proto2"
	message_type {
		name: "Order"
		field { name: "item" number: 1 type: TYPE_GROUP type_name: ".legacy.Order.Item" label: LABEL_OPTIONAL }
		nested_type { name: "Item" field { name: "id" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
	}`)

func file(text string) protoreflect.FileDescriptor {
	f := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(text), f); err != nil {
		panic(err)
	}
	d, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(d)
	}
	for i := 0; err == nil && i < d.Messages().Len(); i++ {
		err = protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(d.Messages().Get(i)))
	}
	if err != nil {
		panic(err)
	}
	return d
}

// message returns a message of a type by its text.
func message(t testing.TB, f protoreflect.FileDescriptor, name protoreflect.Name, text string) proto.Message {
	t.Helper()
	m := dynamicpb.NewMessage(f.Messages().ByName(name))
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func order(t testing.TB, text string) proto.Message {
	t.Helper()
	return message(t, orders, "Order", text)
}
