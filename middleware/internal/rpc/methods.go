package rpc

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Matches reports whether a method is the one of a prefix, "/pay.v1.Payments/Charge", or one of its service, "/pay.v1.Payments/".
func Matches(prefix, method string) bool {
	if strings.HasSuffix(prefix, "/") {
		return strings.HasPrefix(method, prefix)
	}
	return method == prefix
}

// descriptor returns what the linked-in protobuf files say of a method; nil if that is nothing.
func descriptor(method string) protoreflect.MethodDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if s, ok := found.(protoreflect.ServiceDescriptor); ok && err == nil {
		return s.Methods().ByName(protoreflect.Name(name))
	}
	return nil
}

var safe sync.Map // whether a method has no side effects, by its name

// NoSideEffects reports whether the idempotency_level of a method says that it has none.
func NoSideEffects(method string) bool {
	if known, ok := safe.Load(method); ok {
		return known.(bool)
	}
	none := false
	if d := descriptor(method); d != nil {
		options, ok := d.Options().(*descriptorpb.MethodOptions)
		none = ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	}
	safe.Store(method, none)
	return none
}

// A Method is one of a service.
type Method struct {
	Name   string // full
	Stream bool
}

// Linked returns the methods of the service of a prefix that the linked-in protobuf files have.
func Linked(prefix string) (methods []Method) {
	service, _, _ := strings.Cut(strings.TrimPrefix(prefix, "/"), "/")
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	s, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		methods = append(methods, Method{
			"/" + service + "/" + string(m.Name()), m.IsStreamingClient() || m.IsStreamingServer(),
		})
	}
	return methods
}

// CheckPrefix returns the error for a prefix of which a method would pass its interceptor in silence: there is none with that
// name, or one is a stream and the interceptor is for unary calls, or the other way round.
func CheckPrefix(prefix string, streams bool, methods []Method) error {
	if service, _, found := strings.Cut(strings.TrimPrefix(prefix, "/"), "/"); prefix == "" || prefix[0] != '/' || !found || service == "" {
		return fmt.Errorf("holdfast: prefix %q: write /package.Service/ or /package.Service/Method", prefix)
	}
	var stream, unary string // of each kind the first
	for _, m := range methods {
		switch {
		case !Matches(prefix, m.Name):
		case m.Stream:
			stream = cmp.Or(stream, m.Name)
		default:
			unary = cmp.Or(unary, m.Name)
		}
	}
	switch {
	case stream == "" && unary == "":
		return fmt.Errorf("holdfast: prefix %q: no method has it", prefix)
	case stream != "" && unary != "":
		return fmt.Errorf("holdfast: prefix %q: %s is a stream and %s is none, and no interceptor sees both: name the methods one by one",
			prefix, stream, unary)
	case stream != "" && !streams:
		return fmt.Errorf("holdfast: prefix %q: %s is a stream, which this interceptor does not see", prefix, stream)
	case unary != "" && streams:
		return fmt.Errorf("holdfast: prefix %q: %s is no stream, and this interceptor sees only streams", prefix, unary)
	}
	return nil
}
