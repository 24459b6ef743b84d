package shape

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// directories has the source of modules in the module cache, by their paths.
var directories sync.Map

// directory returns where the source of a module is, in the version of go.mod. It panics if there is none: the program
// runs beside its source, and was built from those modules.
func directory(module string) string {
	if known, ok := directories.Load(module); ok {
		return known.(string)
	}
	_, here, _, _ := runtime.Caller(0)
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = filepath.Dir(here), append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		panic(fmt.Errorf("source of %s: %w", module, err))
	}
	path := strings.TrimSpace(string(out))
	directories.Store(module, path)
	return path
}

// scriptFile returns the script that is a file of a module.
func scriptFile(module, file string) *redis.Script {
	text, err := os.ReadFile(filepath.Join(directory(module), file))
	if err != nil {
		panic(fmt.Errorf("script of %s: %w", module, err))
	}
	return redis.NewScript(string(text))
}

// scriptVariable returns the script that is the first text in the value of a variable of a Go file of a module.
func scriptVariable(module, file, variable string) *redis.Script {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(directory(module), file), nil, parser.SkipObjectResolution)
	if err != nil {
		panic(fmt.Errorf("script of %s: %w", module, err))
	}
	for value := range valuesOf(parsed, variable) {
		for node := range ast.Preorder(value) {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value) // the parser has checked it
				return redis.NewScript(text)
			}
		}
	}
	panic(fmt.Errorf("script of %s: no text of %s in %s", module, variable, file))
}

// valuesOf returns the values with which variables of that name are declared.
func valuesOf(file *ast.File, variable string) iter.Seq[ast.Expr] {
	return func(yield func(ast.Expr) bool) {
		for node := range ast.Preorder(file) {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range spec.Names {
				if name.Name == variable && i < len(spec.Values) && !yield(spec.Values[i]) {
					return
				}
			}
		}
	}
}
