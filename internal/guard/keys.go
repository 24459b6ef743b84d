package guard

import (
	"cmp"
	"fmt"
	"slices"
)

// KeyFuncs returns a copy of the key functions of a place, which the caller may change afterwards. It panics if there are none, or one
// is nil. The name is that of the caller, for the panic.
func KeyFuncs[W, K any, F ~func(W) (K, error)](name string, fns []F) []F {
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

// AllKeys returns the keys that the functions make of a work item, or the first error.
func AllKeys[W, K any, F ~func(W) (K, error)](of W, fns []F) ([]K, error) {
	keys := make([]K, len(fns))
	for i, fn := range fns {
		key, err := fn(of)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// FirstKey returns the key of the first function that finds one. A zero key counts as the error missing. It tries the next function
// only after an error that is absent. If all fail so, it returns the error of the first.
func FirstKey[W any, K interface{ IsZero() bool }, F ~func(W) (K, error)](of W, fns []F, absent func(error) bool, missing error) (K, error) {
	var none K
	var first error
	for _, fn := range fns {
		key, err := fn(of)
		switch {
		case err == nil && !key.IsZero():
			return key, nil
		case err == nil:
			err = missing
		case !absent(err):
			return none, err
		}
		first = cmp.Or(first, err)
	}
	return none, first
}
