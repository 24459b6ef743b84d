package rpc

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-go/holdfast/internal/guard"
)

// deepestAny bounds how many messages within messages of type google.protobuf.Any are resolved. Each of them is unmarshalled, so
// without a bound a small request could cost the square of its size. What lies deeper counts by its bytes.
const deepestAny = 8

// fingerprint returns what distinguishes a request from others, whatever build or language has sent it. Marshalling is not canonical
// across builds, so it hashes a walk: fields by number, maps by key, an Any by its content. Unknown fields and the ignored
// ones are left out.
func fingerprint(secret []byte, method string, m proto.Message, ignored fieldTree) []byte {
	w := walk{sum: sha256.New(), out: make([]byte, 0, 1<<10)}
	w.message(m.ProtoReflect(), ignored, 0)
	w.flush()
	sum := guard.Digest(secret, method, string(w.sum.Sum(nil)))
	return sum[:]
}

// fieldTree has the ignored fields of a message: by name, the tree of the fields inside it, or nil for a field that is ignored itself.
// A walk descends in it, because to join the path of each field would cost the square of the depth of a nested request.
type fieldTree map[string]fieldTree

// add adds the path of a field. It is ignored with all that is in it, whatever paths are longer.
func (t fieldTree) add(path []string) {
	name := path[0]
	below, known := t[name]
	switch {
	case known && below == nil:
	case len(path) == 1:
		t[name] = nil
	default:
		if !known {
			below = fieldTree{}
			t[name] = below
		}
		below.add(path[1:])
	}
}

// walk hashes messages in a form of its own, in which every value says what it is and where it ends. It hashes as it goes, because
// the form of a list of small numbers is longer than the request.
type walk struct {
	sum hash.Hash
	out []byte // what was not hashed yet
}

func (w *walk) flush() {
	_, _ = w.sum.Write(w.out) // a hash takes everything
	w.out = w.out[:0]
}

func (w *walk) number(kind byte, n uint64) {
	if cap(w.out)-len(w.out) <= binary.MaxVarintLen64 {
		w.flush()
	}
	w.out = binary.AppendUvarint(append(w.out, kind), n)
}

func writeText[T string | []byte](w *walk, kind byte, text T) {
	w.number(kind, uint64(len(text)))
	for len(text) > 0 {
		if len(w.out) == cap(w.out) {
			w.flush()
		}
		n := min(len(text), cap(w.out)-len(w.out))
		w.out = append(w.out, text[:n]...)
		text = text[n:]
	}
}

func (w *walk) message(m protoreflect.Message, ignored fieldTree, anys int) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		w.any(a.GetTypeUrl(), a.GetValue(), ignored, anys)
		return
	}
	if d := m.Descriptor(); d.FullName() == "google.protobuf.Any" { // of another Go type
		w.any(m.Get(d.Fields().ByNumber(1)).String(), m.Get(d.Fields().ByNumber(2)).Bytes(), ignored, anys)
		return
	}
	var fields []protoreflect.FieldDescriptor
	m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if below, named := ignored[string(fd.Name())]; !named || below != nil {
			fields = append(fields, fd)
		}
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	w.number('m', uint64(len(fields)))
	for _, fd := range fields {
		w.number('n', uint64(fd.Number()))
		w.field(fd, m.Get(fd), ignored[string(fd.Name())], anys)
	}
}

// hasPath reports whether a message has the field of a path by which it can be ignored. What is in an Any is not known.
func hasPath(m protoreflect.MessageDescriptor, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	if m.FullName() == "google.protobuf.Any" {
		return true
	}
	fd := m.Fields().ByName(protoreflect.Name(name))
	if fd != nil && fd.IsMap() {
		fd = fd.MapValue()
	}
	return fd != nil && (!more || fd.Message() != nil && hasPath(fd.Message(), rest))
}

// linkedHas reports whether the request of any method that is linked into the program has the field of a path.
func linkedHas(path string) (found bool) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				found = found || hasPath(methods.Get(j).Input(), path)
			}
		}
		return !found
	})
	return found
}

func (w *walk) field(fd protoreflect.FieldDescriptor, v protoreflect.Value, ignored fieldTree, anys int) {
	switch {
	case fd.IsList():
		list := v.List()
		w.number('l', uint64(list.Len()))
		for i := range list.Len() {
			w.value(fd, list.Get(i), ignored, anys)
		}
	case fd.IsMap():
		var keys []protoreflect.MapKey
		v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, k)
			return true
		})
		slices.SortFunc(keys, compareKeys)
		w.number('p', uint64(len(keys)))
		for _, k := range keys {
			w.value(fd.MapKey(), k.Value(), ignored, anys)
			w.value(fd.MapValue(), v.Map().Get(k), ignored, anys)
		}
	default:
		w.value(fd, v, ignored, anys)
	}
}

func compareKeys(a, b protoreflect.MapKey) int {
	switch a.Interface().(type) {
	case string:
		return strings.Compare(a.String(), b.String())
	case bool:
		return boolRank(a.Bool()) - boolRank(b.Bool())
	case int32, int64:
		return cmp.Compare(a.Int(), b.Int())
	}
	return cmp.Compare(a.Uint(), b.Uint())
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *walk) value(fd protoreflect.FieldDescriptor, v protoreflect.Value, ignored fieldTree, anys int) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.message(v.Message(), ignored, anys)
	case protoreflect.StringKind:
		writeText(w, 's', v.String())
	case protoreflect.BytesKind:
		writeText(w, 'b', v.Bytes())
	case protoreflect.BoolKind:
		w.number('t', uint64(boolRank(v.Bool())))
	case protoreflect.EnumKind:
		w.number('e', uint64(v.Enum()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		f := v.Float()
		if math.IsNaN(f) { // there are many
			f = math.NaN()
		}
		w.number('f', math.Float64bits(f))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.number('u', v.Uint())
	default:
		w.number('i', uint64(v.Int()))
	}
}

// any writes the content of an Any, or its bytes if it is of a type that is unknown here.
func (w *walk) any(url string, value []byte, ignored fieldTree, anys int) {
	name := url[strings.LastIndexByte(url, '/')+1:]
	writeText(w, 'a', name)
	if anys < deepestAny {
		if t, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
			if m := t.New(); proto.Unmarshal(value, m.Interface()) == nil {
				w.message(m, ignored, anys+1)
				return
			}
		}
	}
	writeText(w, 'b', value)
}
