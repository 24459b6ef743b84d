package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goFlags are the flags of "go test" that the pages may use.
var goFlags = []string{
	"bench", "benchmem", "benchtime", "count", "cpuprofile", "fuzz", "fuzztime", "parallel", "race", "run", "short",
	"shuffle", "tags", "timeout", "v",
}

// goMistake returns what is wrong with a call of the program go, "" if nothing is: a package, a test or a flag that does
// not exist.
func goMistake(c command) string {
	if len(c.args) < 2 {
		return "no command of go"
	}
	at := slices.IndexFunc(c.args, func(word string) bool { return word == "." || strings.HasPrefix(word, "./") })
	switch verb := c.args[1]; {
	case at < 0:
		return "names no package of this repository"
	case verb == "doc":
		_, err := readPackage(c.dir, c.args[at])
		return text(err)
	case verb == "run":
		return runMistake(c, at)
	case verb == "test":
		return testMistake(c, at)
	}
	return "a command of go that the tests do not know"
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// runMistake checks "go run": that the package is a program with these flags, and belongs to the workspace.
func runMistake(c command, at int) string {
	p, err := readPackage(c.dir, c.args[at])
	if err != nil {
		return err.Error()
	}
	if p.name != "main" {
		return c.args[at] + " is no program"
	}
	for _, name := range flagsIn(c.args[at+1:]) {
		if !p.flags[name] {
			return fmt.Sprintf("%s has no flag -%s", c.args[at], name)
		}
	}
	return workspaceMistake(c)
}

// testMistake checks "go test": that the tests, the benchmarks and the flags exist.
func testMistake(c command, at int) string {
	p, err := readPackage(c.dir, c.args[at])
	if err != nil {
		return err.Error()
	}
	for i, word := range c.args {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, _, _ := strings.Cut(word[1:], "=")
		if !slices.Contains(goFlags, name) && !p.testFlags[name] {
			return fmt.Sprintf("neither go test nor the tests of %s have the flag -%s", c.args[at], name)
		}
		prefix := map[string]string{"run": "Test", "bench": "Benchmark"}[name]
		if prefix == "" || i+1 == len(c.args) || name == "run" && slices.Contains(c.args, "-bench") {
			continue
		}
		if missing := p.unmatched(prefix, c.args[i+1]); missing != "" {
			return fmt.Sprintf("%s has no %s that matches %q", c.args[at], prefix, missing)
		}
	}
	return workspaceMistake(c)
}

// workspaceMistake checks that the directory of a command belongs to a module of go.work, or has a go.work of its own, or
// that the command turns it off.
func workspaceMistake(c command) string {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return err.Error()
	}
	for dir := filepath.ToSlash(filepath.Clean(c.dir)); dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			_, err := os.Stat(filepath.Join(root, dir, "go.work"))
			if err == nil || strings.Contains(string(work), "./"+dir+"\n") || slices.Contains(c.env, "GOWORK=off") {
				return ""
			}
			return dir + " is no module of go.work: the command needs GOWORK=off"
		}
	}
	return ""
}

// flagsIn returns the names of the flags among the arguments of a program.
func flagsIn(args []string) (names []string) {
	for _, word := range args {
		if len(word) > 1 && word[0] == '-' {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			names = append(names, name)
		}
	}
	return names
}

// A goPackage is what the source of a package declares.
type goPackage struct {
	name      string
	flags     map[string]bool // outside tests
	testFlags map[string]bool
	functions []string // of tests
}

// readPackage reads the Go files of a directory.
func readPackage(dir, path string) (*goPackage, error) {
	p := &goPackage{flags: make(map[string]bool), testFlags: make(map[string]bool)}
	files, err := filepath.Glob(filepath.Join(root, dir, path, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no package %s in %s", path, dir)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(name, "_test.go") {
			p.name = file.Name.Name
			defineFlags(file, p.flags)
			continue
		}
		defineFlags(file, p.testFlags)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				p.functions = append(p.functions, f.Name.Name)
			}
		}
	}
	return p, nil
}

// defines matches the functions of package flag that define one.
var defines = regexp.MustCompile(`^(Bool|Duration|Float64|Int|Int64|String|Uint|Uint64|Text|Func|BoolFunc)?(Var)?$`)

// defineFlags adds the names of the flags that a file defines.
func defineFlags(file *ast.File, names map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fn, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !defines.MatchString(fn.Sel.Name) {
			return true
		}
		if from, ok := fn.X.(*ast.Ident); !ok || from.Name != "flag" && from.Name != "flags" {
			return true
		}
		at := 0
		if strings.HasSuffix(fn.Sel.Name, "Var") {
			at = 1
		}
		if len(call.Args) > at {
			if name, ok := constant(call.Args[at]); ok {
				names[name] = true
			}
		}
		return true
	})
}

// unmatched returns the first alternative of a pattern of -run or -bench that matches no function, "" if there is none.
func (p *goPackage) unmatched(prefix, pattern string) string {
	for alternative := range strings.SplitSeq(pattern, "|") {
		top, _, _ := strings.Cut(alternative, "/")
		match, err := regexp.Compile(top)
		if err != nil || !slices.ContainsFunc(p.functions, func(name string) bool {
			return strings.HasPrefix(name, prefix) && match.MatchString(name)
		}) {
			return alternative
		}
	}
	return ""
}

// environment reports whether a program of this repository reads an environment variable. Those of Go begin with GO.
func environment(name string) (bool, error) {
	if strings.HasPrefix(name, "GO") {
		return true, nil
	}
	found := false
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "docs"): // the tests of this package have names that do not exist
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		source, err := os.ReadFile(path)
		if found = strings.Contains(string(source), strconv.Quote(name)); found {
			return fs.SkipAll
		}
		return err
	})
	return found, err
}
