package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/defaults.md and docs/log-lines.md")

// TestDefaults: docs/defaults.md has the default of each option, as its doc comment gives it. With -update it writes the page.
func TestDefaults(t *testing.T) {
	t.Parallel()
	page := strings.Builder{}
	page.WriteString(`# Defaults

The default of each option, by package. ` + "`go test ./tests/docs -run TestDefaults -update`" + `
writes this page from the doc comments, which also have the limits. Which options of core the guards take is on their pages:
[http](http.md#options), [cron](cron.md), [asynq](asynq.md).
`)
	var titles, tables []string // packages with the same options and defaults share a table
	eachPublic(t, func(p *build.Package) {
		var rows []string
		for _, f := range optionsOf(t, p) {
			text := strings.Join(strings.Fields(f.Doc), " ")
			found := defaultsTo.FindAllStringSubmatch(text, -1)
			if found == nil {
				continue // WithFixedTTL, for instance, which replaces another option
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", f.Name, inCode.ReplaceAllString(found[len(found)-1][1], "`$1`")))
		}
		switch same := slices.Index(tables, strings.Join(rows, "")); {
		case same >= 0:
			titles[same] += ", " + p.Name
		case len(rows) > 0:
			titles, tables = append(titles, p.Name), append(tables, strings.Join(rows, ""))
		}
	})
	for i, title := range titles {
		fmt.Fprintf(&page, "\n## %s\n\n| option | default |\n| --- | --- |\n%s", title, tables[i])
	}
	name := filepath.Join(root, "docs/defaults.md")
	if *update {
		if err := os.WriteFile(name, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, "docs/defaults.md") != page.String() {
		t.Error("docs/defaults.md is not what the doc comments say: go test ./tests/docs -run TestDefaults -update")
	}
}

var (
	defaultsTo = regexp.MustCompile(`Defaults to ((?:[^.]|\.\d|\.[a-zA-Z])+)\.(?: |$)`)
	inCode     = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
)

// optionsOf returns the functions of a package that return an option.
func optionsOf(t *testing.T, p *build.Package) (options []*doc.Func) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	all := pkg.Funcs
	for _, of := range pkg.Types {
		all = append(all, of.Funcs...)
	}
	for _, f := range all {
		if results := f.Decl.Type.Results; results != nil && len(results.List) == 1 {
			if of, ok := results.List[0].Type.(*ast.Ident); ok && strings.HasSuffix(of.Name, "Option") {
				options = append(options, f)
			}
		}
	}
	slices.SortFunc(options, func(a, b *doc.Func) int { return strings.Compare(a.Name, b.Name) })
	return options
}
