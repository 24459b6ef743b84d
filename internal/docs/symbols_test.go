package docs_test

import (
	"go/build"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publicPackages returns the directories of the packages of this module that users can import, relative to the root.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || at == root {
			return err
		}
		name := d.Name()
		_, noModule := os.Stat(filepath.Join(at, "go.mod"))
		published := name == "gocronlock" // as a module of its own
		if noModule == nil && !published || name == "internal" || name == "testdata" || strings.HasPrefix(name, ".") {
			return fs.SkipDir
		}
		if p, err := build.ImportDir(at, 0); err != nil || p.Name == "main" {
			return nil
		}
		dir, err := filepath.Rel(root, at)
		dirs = append(dirs, filepath.ToSlash(dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// symbols returns the exported functions of the tested package and the exported methods of its exported types, by their
// names: "New", "Client.Close". It includes methods that a type gets by embedding, but none of other modules.
func (u *universe) symbols() map[string]*types.Func {
	found := make(map[string]*types.Func)
	scope := u.packages[u.tested].Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if !object.Exported() || !u.production(object) {
			continue
		}
		switch object := object.(type) {
		case *types.Func:
			found[name] = object
		case *types.TypeName:
			for _, method := range methods(object) {
				found[name+"."+method.Name()] = method
			}
		}
	}
	return found
}

// methods returns the exported methods of a type and of pointers to it. An alias has those of the type that it names, so
// methods returns none for an alias.
func methods(of *types.TypeName) (found []*types.Func) {
	if of.IsAlias() {
		return nil
	}
	receiver := of.Type()
	if !types.IsInterface(receiver) {
		receiver = types.NewPointer(receiver)
	}
	for selection := range types.NewMethodSet(receiver).Methods() {
		method := selection.Obj().(*types.Func)
		if p := method.Pkg(); method.Exported() && p != nil && strings.HasPrefix(p.Path(), modulePath) {
			found = append(found, method.Origin())
		}
	}
	return found
}

// implicit returns true for a method that programs call through functions of the standard library, for instance those of
// fmt, errors and io. Tests need not name such a method.
func implicit(f *types.Func) bool {
	return f.Signature().Recv() != nil && slices.Contains([]string{"Error", "Unwrap", "String", "GoString", "Read", "WriteString"}, f.Name())
}

// own returns the function that another universe knows as f. It returns f if this universe lacks the package.
func (u *universe) own(f *types.Func) *types.Func {
	p := u.packages[f.Pkg().Path()]
	if p == nil || p == f.Pkg() {
		return f
	}
	object := p.Scope().Lookup(f.Name())
	if receiver := f.Signature().Recv(); receiver != nil {
		of := receiver.Type()
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		object, _, _ = types.LookupFieldOrMethod(p.Scope().Lookup(of.(*types.Named).Obj().Name()).Type(), true, p, f.Name())
	}
	own, _ := object.(*types.Func)
	return own
}
