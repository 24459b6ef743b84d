package coretest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"testing"
)

// OptionNames returns the names of all options that core has for locks and records, such as "core.WithTTL". A guard has to
// take each of them, or to refuse it.
func OptionNames(t testing.TB) (names []string) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../../core/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Results == nil {
				continue
			}
			result, _ := fn.Type.Results.List[0].Type.(*ast.Ident)
			if result != nil && (result.Name == "LockOption" || result.Name == "OnceOption") {
				names = append(names, "core."+fn.Name.Name)
			}
		}
	}
	return names
}
