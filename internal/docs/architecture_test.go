package docs_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// roomsPath begins the import paths of core's internal packages.
const roomsPath = "github.com/holdfast-go/holdfast/core/internal/"

// TestArchitecture compares the imports of core's packages with the table of docs/architecture.md.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	allowed := drawnRooms(t)
	for room := range allowed {
		if loop := importLoop(allowed, room, nil); loop != nil {
			t.Errorf("the table has a cycle: %v", loop)
		}
	}
	rooms := map[string]string{"core": filepath.Join(root, "core")}
	folders, err := os.ReadDir(filepath.Join(root, "core/internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		rooms[folder.Name()] = filepath.Join(root, "core/internal", folder.Name())
		if allowed[folder.Name()] == nil {
			t.Errorf("docs/architecture.md has no row for %s", folder.Name())
		}
	}
	for room := range allowed {
		if rooms[room] == "" {
			t.Errorf("docs/architecture.md has a row for %s, which does not exist", room)
		}
	}
	for room, dir := range rooms {
		for _, imported := range roomsImported(t, dir) {
			if room != "core" && !slices.Contains(allowed[room], imported) {
				t.Errorf("%s imports %s, which docs/architecture.md does not allow", room, imported)
			}
		}
	}
}

// drawnRooms reads the table: the packages, and what each may import. The row of core says "all below".
func drawnRooms(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Rooms")
	table, _, _ = strings.Cut(table, "\n## ")
	name := regexp.MustCompile("`([a-z]+)`")
	allowed := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|[^|]*\\|([^|]*)\\|$").FindAllStringSubmatch(table, -1) {
		allowed[row[1]] = []string{}
		for _, room := range name.FindAllStringSubmatch(row[2], -1) {
			allowed[row[1]] = append(allowed[row[1]], room[1])
		}
	}
	if len(allowed) < 8 {
		t.Fatalf("found only %d rooms in the table", len(allowed))
	}
	return allowed
}

// TestImportsAreDrawn: each arrow of the picture is in the table, and each import of the table follows from the arrows.
func TestImportsAreDrawn(t *testing.T) {
	t.Parallel()
	allowed := drawnRooms(t)
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	arrows := make(map[string][]string)
	for _, line := range regexp.MustCompile(`(?m)^  (\w+) --> ([\w &]+)$`).FindAllStringSubmatch(string(text), -1) {
		arrows[line[1]] = strings.Split(line[2], " & ")
	}
	for from, drawn := range arrows {
		for _, to := range drawn {
			if from != "core" && !slices.Contains(allowed[from], to) {
				t.Errorf("the picture has an arrow from %s to %s, the table has no such import", from, to)
			}
		}
	}
	for from, rooms := range allowed {
		for _, to := range rooms {
			if !reaches(arrows, from, to) {
				t.Errorf("the table lets %s import %s, no arrows lead there", from, to)
			}
		}
	}
}

// reaches reports whether arrows lead from one room to another.
func reaches(arrows map[string][]string, from, to string) bool {
	return slices.ContainsFunc(arrows[from], func(next string) bool { return next == to || reaches(arrows, next, to) })
}

// importLoop returns the rooms on a way from a room back to itself, nil if there is none.
func importLoop(allowed map[string][]string, room string, way []string) []string {
	if slices.Contains(way, room) {
		return append(way, room)
	}
	for _, next := range allowed[room] {
		if loop := importLoop(allowed, next, append(slices.Clip(way), room)); loop != nil {
			return loop
		}
	}
	return nil
}

// roomsImported returns the internal packages of core that the Go files of a folder import, tests left out.
func roomsImported(t *testing.T, dir string) (rooms []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if room, found := strings.CutPrefix(imported, roomsPath); found {
				rooms = append(rooms, room)
			}
		}
	}
	return rooms
}

// TestImportLoop: the search for cycles finds one, and ends.
func TestImportLoop(t *testing.T) {
	t.Parallel()
	drawn := map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}
	if loop := importLoop(drawn, "a", nil); loop != nil {
		t.Errorf("found %v", loop)
	}
	drawn["c"] = []string{"b"}
	if loop := importLoop(drawn, "b", nil); loop == nil {
		t.Error("found no cycle")
	}
}
