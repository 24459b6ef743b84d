package docs_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A reach is what a test can call, as far as its source shows: the functions, variables and types of all packages that
// the test names, and those that its functions name in turn.
type reach map[types.Object]bool

// reachOf returns what the test with a name can call. "TestX" stands for the whole function. "TestX/*/case" stands for
// what each case that is named gets, see caseOf. If the cases belong to the suite of another package, reachOf adds what
// TestX gives to that suite. It returns the part of the name that it has not found, "" if it has found all.
//
// It does not look into the functions of the package with the path but, except in tests: a test holds what it calls
// itself, not all that is behind it.
func (u *universe) reachOf(name, but string) (found reach, missing string) {
	parts := strings.Split(name, "/")
	test := u.tests[parts[0]]
	if test == nil {
		return nil, parts[0]
	}
	if len(parts) == 1 {
		return u.reach([]ast.Node{test}, but), ""
	}
	found = make(reach)
	suite := u.suite(test)
	for _, part := range parts[1:] {
		if part == "*" {
			continue
		}
		if len(suite[part]) == 0 {
			return nil, part
		}
		for _, c := range suite[part] {
			maps.Copy(found, u.reach([]ast.Node{c.given}, but))
			if c.suite != "" {
				maps.Copy(found, u.reach([]ast.Node{test}, but, c.suite))
			}
		}
	}
	return found, ""
}

// A testCase is what the source gives to the subtest with a name.
type testCase struct {
	given ast.Node
	suite string // the import path of the suite with the case, "" if the case is in a test file
}

// suite returns what a test may give to subtests, by their names.
func (u *universe) suite(test *ast.FuncDecl) map[string][]testCase {
	if cases, ok := u.suites[test]; ok {
		return cases
	}
	cases := make(map[string][]testCase)
	u.suites[test] = cases
	reached := u.reach([]ast.Node{test}, "")
	reached[u.info.Defs[test.Name]] = true
	for object := range reached {
		declared := u.declarations[object]
		if declared == nil {
			continue
		}
		suite := ""
		if u.production(object) {
			suite = object.Pkg().Path()
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			if name, given := caseOf(n); given != nil {
				cases[name] = append(cases[name], testCase{given, suite})
			}
			return true
		})
	}
	return cases
}

// caseOf returns the name of a subtest and what the code gives to it: the value of a map at that key, the elements
// beside the name in a table, or the function that t.Run gets. It returns nil if the code is none of these.
func caseOf(n ast.Node) (name string, given ast.Node) {
	var key ast.Expr
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		key, given = n.Key, n.Value
	case *ast.CompositeLit:
		if len(n.Elts) > 0 {
			key, given = n.Elts[0], n
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Run" && len(n.Args) == 2 {
			key, given = n.Args[0], n.Args[1]
		}
	}
	literal, ok := key.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", nil
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return "", nil
	}
	return strings.ReplaceAll(text, " ", "_"), given
}

// reach returns what some code can call, without what is behind the functions of some packages.
func (u *universe) reach(code []ast.Node, but ...string) reach {
	seen := make(reach)
	var todo []types.Object
	for _, node := range code {
		todo = append(todo, u.named(node)...)
	}
	for len(todo) > 0 {
		object := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[object] {
			continue
		}
		seen[object] = true
		todo = append(todo, u.implementers(object)...)
		todo = append(todo, u.called(object)...)
		declared := u.declarations[object]
		if declared == nil || slices.Contains(but, object.Pkg().Path()) && u.production(object) {
			continue
		}
		if _, ok := u.uses[object]; !ok {
			u.uses[object] = u.named(declared)
		}
		todo = append(todo, u.uses[object]...)
	}
	return seen
}

// named returns the objects whose names are in the code.
func (u *universe) named(code ast.Node) (all []types.Object) {
	ast.Inspect(code, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			switch object := u.info.Uses[name].(type) {
			case *types.Func:
				all = append(all, object.Origin())
			case *types.Var, *types.TypeName:
				all = append(all, object)
			}
		}
		return true
	})
	return all
}

// implementers returns, for a method of an interface, the methods of this module's types that implement it.
func (u *universe) implementers(object types.Object) []types.Object {
	face := interfaceOf(object)
	if face == nil {
		return nil
	}
	all, found := u.methods[object]
	if found {
		return all
	}
	for _, of := range u.types {
		if pointer := types.NewPointer(of); types.Implements(pointer, face) {
			own, _, _ := types.LookupFieldOrMethod(pointer, true, object.Pkg(), object.Name())
			all = append(all, own)
		}
	}
	u.methods[object] = all
	return all
}

// called returns the exported methods of a type with an unexported name. They are there for interfaces, so whoever has a
// value can call them, as the HTTP server does with ServeHTTP.
func (u *universe) called(object types.Object) (all []types.Object) {
	name, ok := object.(*types.TypeName)
	if !ok || name.Exported() || u.fset.File(name.Pos()) == nil {
		return nil
	}
	for _, method := range methods(name) {
		all = append(all, method)
	}
	return all
}

// interfaceOf returns the interface that declares a method, nil for all else.
func interfaceOf(object types.Object) *types.Interface {
	method, ok := object.(*types.Func)
	if !ok || method.Signature().Recv() == nil {
		return nil
	}
	face, _ := method.Signature().Recv().Type().Underlying().(*types.Interface)
	return face
}

// has returns true if the code can call the function. A method of an interface counts if the code names a type that
// implements it, since it is the package that calls such a method.
func (r reach) has(f *types.Func) bool {
	if r[f] {
		return true
	}
	face := interfaceOf(f)
	for object := range r {
		if name, ok := object.(*types.TypeName); ok && face != nil && !types.IsInterface(name.Type()) &&
			types.Implements(types.NewPointer(name.Type()), face) {
			return true
		}
	}
	return false
}
