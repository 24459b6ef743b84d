package core_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// corePath is the import path of core; its internal packages begin with roomsPath.
const (
	corePath  = "github.com/holdfast-go/holdfast/core"
	roomsPath = corePath + "/internal/"
)

// repository is the tree of this module and of those beside it.
var repository = os.DirFS("..")

// TestArchitecture compares the imports of core's packages with the table of docs/architecture.md.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	table, found := readTable(t), readImports(t, repository)
	if len(table) < 8 || len(found.imports) < 8 {
		t.Fatalf("found %d packages in the table, %d in core", len(table), len(found.imports))
	}
	for _, mistake := range badArchitecture(table, found) {
		t.Error(mistake)
	}
}

// tableRow is one package in the table: what it may import.
type tableRow struct {
	name    string
	imports []string
	all     bool // of the packages below it
}

// readTable reads the table of docs/architecture.md.
func readTable(t *testing.T) []tableRow {
	t.Helper()
	return parseTable(readDoc(t, "architecture.md"))
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(repository, path.Join("docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	rowOfTable  = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|[^|\n]*\\|([^|\n]*)\\|$")
	packageName = regexp.MustCompile("`([a-z0-9/]+)`")
)

// parseTable returns the rows of the section "Packages".
func parseTable(page string) (table []tableRow) {
	_, section, _ := strings.Cut(page, "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range rowOfTable.FindAllStringSubmatch(section, -1) {
		r := tableRow{name: row[1], all: strings.TrimSpace(row[2]) == "all below"}
		for _, name := range packageName.FindAllStringSubmatch(row[2], -1) {
			r.imports = append(r.imports, name[1])
		}
		table = append(table, r)
	}
	return table
}

// foundImports are the imports between the packages of core, by the importing package. The package core is named "core",
// and those below core/internal by their path from there.
type foundImports struct {
	imports     map[string][]string
	testImports map[string][]string // of test files, without those of a package of itself
	outside     []string            // files outside of core that import an internal package of core
}

// readImports reads all Go files of a tree, whatever their build constraints.
func readImports(t *testing.T, tree fs.FS) foundImports {
	t.Helper()
	found := foundImports{imports: make(map[string][]string), testImports: make(map[string][]string)}
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err == nil {
			err = found.add(file, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// add adds the imports of one file.
func (f *foundImports) add(file string, text []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	name, inCore := packageOf(path.Join(path.Dir(corePath), path.Dir(file)))
	list := f.imports
	if strings.HasSuffix(file, "_test.go") {
		list = f.testImports
	}
	if _, known := list[name]; inCore && !known {
		list[name] = nil
	}
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		imported, ofCore := packageOf(target)
		switch {
		case !ofCore || imported == name:
		case inCore:
			list[name] = append(list[name], imported)
		case strings.HasPrefix(target, roomsPath):
			f.outside = append(f.outside, file)
		}
	}
	return nil
}

// packageOf returns the name of a package of core by its import path. It returns false for any other package.
func packageOf(importPath string) (name string, ofCore bool) {
	if room, ok := strings.CutPrefix(importPath, roomsPath); ok {
		return room, true
	}
	return strings.TrimPrefix(importPath, path.Dir(corePath)+"/"),
		importPath == corePath || strings.HasPrefix(importPath, corePath+"/")
}

// badArchitecture returns a line for each import that the table does not allow, each package that it lacks, each of its
// rows that allows an import upward, and each row for what does not exist.
func badArchitecture(table []tableRow, found foundImports) (mistakes []string) {
	report := func(format string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(format, args...)) }
	var order []string
	for _, row := range table {
		order = append(order, row.name)
	}
	for i, row := range table {
		if slices.Index(order, row.name) != i {
			report("the table has two rows for %s", row.name)
		}
		imports, exists := found.imports[row.name]
		if !exists {
			report("the table has a row for %s, which does not exist", row.name)
		}
		below := order[i+1:]
		for _, allowed := range row.imports {
			switch {
			case !slices.Contains(below, allowed):
				report("the table lets %s import %s, which has no row below it", row.name, allowed)
			case !slices.Contains(imports, allowed):
				report("the table lets %s import %s, but no file does", row.name, allowed)
			}
		}
		allowed := row.imports
		if row.all {
			allowed = below
		}
		for _, imported := range unique(imports, found.testImports[row.name]) {
			if !slices.Contains(allowed, imported) {
				report("%s imports %s, which the table does not allow", row.name, imported)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found.imports)) {
		if !slices.Contains(order, name) {
			report("the table has no row for %s", name)
		}
	}
	for _, file := range unique(found.outside) {
		report("%s imports an internal package of core", file)
	}
	return mistakes
}

// unique returns the names of all lists, each once, in order.
func unique(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestArchitectureMistakesAreFound shows that the comparison can fail: each case changes one thing in a tree that is right.
func TestArchitectureMistakesAreFound(t *testing.T) {
	t.Parallel()
	const page = "## Packages\n\n| `core` | a | all below |\n| `high` | b | `low` |\n| `low` | c | |\n\n## More\n| `no` | d | |\n"
	for name, c := range map[string]struct{ old, text, file, imports, want string }{
		"right":         {},
		"more":          {file: "core/internal/low/b.go", imports: "fmt"},
		"own tests":     {file: "core/internal/low/b_test.go", imports: roomsPath + "low"},
		"upward":        {file: "core/internal/low/b.go", imports: roomsPath + "high", want: "low imports high, which"},
		"core":          {file: "core/internal/low/b.go", imports: corePath, want: "low imports core, which"},
		"test upward":   {file: "core/internal/low/b_test.go", imports: roomsPath + "high", want: "low imports high, which"},
		"not allowed":   {old: "`low` |\n| `low`", text: "|\n| `low`", want: "high imports low, which"},
		"no row":        {old: "| `low` | c | |\n", want: "no row for low"},
		"new room":      {file: "core/internal/x/y/b.go", imports: "fmt", want: "no row for x/y"},
		"other folder":  {file: "core/x/b.go", imports: "fmt", want: "no row for core/x"},
		"no package":    {old: "| `low` | c", text: "| `gone` | d | |\n| `low` | c", want: "row for gone, which does not exist"},
		"two rows":      {old: "| `low` | c", text: "| `low` | d | |\n| `low` | c", want: "two rows for low"},
		"cycle":         {old: "c | |", text: "c | `high` |", want: "lets low import high, which has no row below it"},
		"itself":        {old: "c | |", text: "c | `low` |", want: "lets low import low, which has no row below it"},
		"not needed":    {old: "b | `low` |", text: "b | `low`, `least` |\n| `least` | d | |", file: "core/internal/least/a.go", imports: "fmt", want: "import least, but no file does"},
		"outside":       {file: "bench/a.go", imports: roomsPath + "low", want: "bench/a.go imports an internal"},
		"outside, test": {file: "bench/a_test.go", imports: roomsPath + "low", want: "bench/a_test.go imports an internal"},
	} {
		tree := fstest.MapFS{
			"core/a.go":               {Data: []byte("package a; import (_ \"" + roomsPath + "high\"; _ \"" + roomsPath + "low\")")},
			"core/internal/high/a.go": {Data: []byte("package a; import _ \"" + roomsPath + "low\"")},
			"core/internal/low/a.go":  {Data: []byte("package a; import _ \"fmt\"")},
			"bench/main.go":           {Data: []byte("package a; import _ \"" + corePath + "\"")},
		}
		if c.file != "" {
			tree[c.file] = &fstest.MapFile{Data: []byte("package a; import _ \"" + c.imports + "\"")}
		}
		mistakes := badArchitecture(parseTable("\n"+strings.Replace(page, c.old, c.text, 1)), readImports(t, tree))
		if c.want == "" && len(mistakes) > 0 || c.want != "" && !strings.Contains(strings.Join(mistakes, "\n"), c.want) {
			t.Errorf("%s: found %q, want %q", name, mistakes, c.want)
		}
	}
}

// TestArchitectureIsDrawn: each arrow of docs/imports.svg is in the table, and each import of the table follows from the
// arrows. The description of the picture says the arrows in words.
func TestArchitectureIsDrawn(t *testing.T) {
	t.Parallel()
	arrows := make(map[string][]string)
	for _, s := range regexp.MustCompile(`([a-z0-9/]+) imports ([a-z0-9/, ]+)\.`).FindAllStringSubmatch(readDoc(t, "imports.svg"), -1) {
		arrows[s[1]] = strings.Split(s[2], ", ")
	}
	var below []string
	for _, row := range slices.Backward(readTable(t)) {
		if row.all {
			row.imports = below
		}
		for _, to := range arrows[row.name] {
			if !slices.Contains(row.imports, to) {
				t.Errorf("the picture has an arrow from %s to %s, the table has no such import", row.name, to)
			}
		}
		for _, to := range row.imports {
			if !reaches(arrows, row.name, to, nil) {
				t.Errorf("the table lets %s import %s, no arrows lead there", row.name, to)
			}
		}
		below = append(below, row.name)
	}
}

// reaches reports whether arrows lead from one package to another. The packages in way are not passed again.
func reaches(arrows map[string][]string, from, to string, way []string) bool {
	return !slices.Contains(way, from) && slices.ContainsFunc(arrows[from], func(next string) bool {
		return next == to || reaches(arrows, next, to, append(slices.Clip(way), from))
	})
}

// TestArchitectureNamesFiles: the files and folders that the pages for contributors name exist, and
// CONTRIBUTING.md lists each internal package.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	listed := make(map[string]bool)
	for _, page := range []string{"architecture.md", "../CONTRIBUTING.md"} {
		named := regexp.MustCompile("`((?:core|docs|internal)/[^` ]+)`").FindAllStringSubmatch(readDoc(t, page), -1)
		if len(named) < 10 {
			t.Errorf("%s names only %d files", page, len(named))
		}
		for _, name := range named {
			found, err := fs.Glob(repository, strings.TrimSuffix(name[1], "/"))
			if err != nil || len(found) == 0 {
				t.Errorf("%s names %s: no such file", page, name[1])
			}
			listed[path.Base(page)+" "+name[1]] = true
		}
	}
	for _, row := range readTable(t) {
		if folder := "core/internal/" + row.name; row.name != "core" && !listed["CONTRIBUTING.md "+folder] {
			t.Errorf("CONTRIBUTING.md does not list %s", folder)
		}
	}
}
