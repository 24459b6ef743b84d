package httpguard

import (
	"errors"
	"fmt"
	"slices"
)

// Keys returns a key function that joins the keys of all fns, and fails with the first error. R is the adapter's type
// of a request. Keys panics if there are no functions or one is nil.
func Keys[R any, F ~func(R) (Key, error)](fns ...F) F {
	fns = checked("Keys", fns)
	return func(r R) (Key, error) {
		keys := make([]Key, len(fns))
		for i, fn := range fns {
			key, err := fn(r)
			if err != nil {
				return Key{}, err
			}
			keys[i] = key
		}
		return Join(keys...)
	}
}

// FirstOf returns a key function that returns the key of the first of fns that finds one. It tries the next one only
// after [ErrKeyRequired], [ErrScopeRequired] and the zero Key. If all fail so, it returns the error of the first.
// FirstOf panics if there are no functions or one is nil.
func FirstOf[R any, F ~func(R) (Key, error)](fns ...F) F {
	fns = checked("FirstOf", fns)
	return func(r R) (Key, error) {
		var first error
		for _, fn := range fns {
			key, err := fn(r)
			switch {
			case err == nil && !key.IsZero():
				return key, nil
			case err == nil:
				err = fmt.Errorf("%w: a part is missing", ErrKeyRequired)
			case !errors.Is(err, ErrKeyRequired) && !errors.Is(err, ErrScopeRequired):
				return Key{}, err
			}
			if first == nil {
				first = err
			}
		}
		return Key{}, first
	}
}

// checked returns a copy of fns, which the caller may change afterwards.
func checked[F ~func(R) (Key, error), R any](name string, fns []F) []F {
	if len(fns) == 0 {
		panic("holdfast: " + name + ": no key functions")
	}
	for i, fn := range fns {
		if fn == nil {
			panic(fmt.Sprintf("holdfast: %s: key function %d is nil", name, i+1))
		}
	}
	return slices.Clone(fns)
}
