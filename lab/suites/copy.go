package suites

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const guards = "github.com/holdfast-go/holdfast/lab/suites/guards"

// folder is where a copy has the guards.
const folder = "holdfastsuite"

// Copy is a copy of a suite's module, into which the guards are built.
type Copy struct {
	Suite   Suite
	Version string
	dir     string
	tests   map[string]string // by the import path of a package, its compiled tests
	interop string            // the folder of the programs of its interoperability tests; "" without any
}

// NewCopy copies the module of a suite to a folder, puts the guards in, and compiles its tests, with further flags of go test.
func NewCopy(s Suite, dir string, flags ...string) (*Copy, error) {
	var module struct{ Version, Dir string }
	found, err := goTool(".", "mod", "download", "-json", s.Module)
	if err = cmp.Or(err, json.Unmarshal(found, &module)); err != nil {
		return nil, err
	}
	c := &Copy{Suite: s, Version: module.Version, dir: filepath.Join(dir, "module"), tests: map[string]string{}}
	if err = copyWritable(c.dir, module.Dir); err != nil {
		return nil, err
	}
	if err = c.patch(); err != nil {
		return nil, err
	}
	if err = c.require(); err != nil {
		return nil, err
	}
	tests := filepath.Join(dir, "tests")
	if err = c.compile(tests, flags); err != nil || !c.Suite.Interop {
		return c, err
	}
	return c, c.compileInterop(tests)
}

// copyWritable copies a folder of the module cache, which is read-only.
func copyWritable(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return cmp.Or(err, os.Chmod(name, 0o600))
		}
		return os.Chmod(name, 0o700)
	})
}

// patch puts the call of the guard into the source, and the guards' packages beside it.
func (c *Copy) patch() error {
	for _, p := range c.Suite.Patches {
		file := filepath.Join(c.dir, p.File)
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if n := strings.Count(string(before), p.Before); n != 1 {
			return fmt.Errorf("%s of %s has %q %d times, want once", p.File, c.Suite.Module, p.Before, n)
		}
		if err = os.WriteFile(file, []byte(strings.Replace(string(before), p.Before, p.After, 1)), 0o600); err != nil {
			return err
		}
	}
	hook := fmt.Sprintf("package %s\n\n// HoldfastSuite is what a user of this package would write at each of its routes.\nvar HoldfastSuite = %s\n", c.Suite.Package, c.Suite.Hook)
	if imports := c.Suite.Imports; imports != "" {
		hook = strings.Replace(hook, "\n\n", "\n\nimport \""+imports+"\"\n\n", 1)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "zz_holdfast_suite.go"), []byte(hook), 0o600); err != nil {
		return err
	}
	for _, guard := range []string{"installed", c.Suite.Guard} {
		if err := c.addGuard(guard); err != nil {
			return err
		}
	}
	return nil
}

// addGuard copies the package of a guard into the module.
func (c *Copy) addGuard(name string) error {
	source, err := os.ReadFile(filepath.Join("guards", name, name+".go"))
	if err != nil {
		return err
	}
	source = bytes.ReplaceAll(source, []byte(guards), []byte(path.Join(c.Suite.Module, folder)))
	to := filepath.Join(c.dir, folder, name)
	return cmp.Or(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, name+".go"), source, 0o600))
}

// require has the module require this repository.
func (c *Copy) require() error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	const holdfast = "github.com/holdfast-go/holdfast"
	args := []string{"mod", "edit"}
	for _, module := range append([]string{""}, c.Suite.Needs...) {
		args = append(args, "-require", holdfast+module+"@v0.0.0", "-replace", holdfast+module+"="+root+module)
	}
	_, err = goTool(c.dir, args...)
	return err
}

// compile compiles the tests, each package's with a file that installs the guard.
func (c *Copy) compile(to string, flags []string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	listed, err := goTool(c.dir, append([]string{"list", "-find", "-json=ImportPath,Name,Dir,TestGoFiles,XTestGoFiles"}, c.Suite.Packages...)...)
	if err != nil {
		return err
	}
	for packages := json.NewDecoder(bytes.NewReader(listed)); packages.More(); {
		var p struct {
			ImportPath, Name, Dir     string
			TestGoFiles, XTestGoFiles []string
		}
		if err = packages.Decode(&p); err != nil {
			return err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		install := fmt.Sprintf("package %s_test\n\nimport (\n\tsuite %q\n\tinstalled %q\n)\n\nfunc init() { suite.HoldfastSuite = installed.Install() }\n",
			p.Name, c.Suite.Module, path.Join(c.Suite.Module, folder, c.Suite.Guard))
		if err = os.WriteFile(filepath.Join(p.Dir, "zz_holdfast_suite_test.go"), []byte(install), 0o600); err != nil {
			return err
		}
		name := path.Base(p.ImportPath)
		if version.MatchString(name) {
			name = path.Base(path.Dir(p.ImportPath))
		}
		c.tests[p.ImportPath] = filepath.Join(to, name+".test") // a second one of that name would fail
	}
	args := append([]string{"test", "-c", "-vet=off", "-o", to + "/"}, flags...)
	_, err = goTool(c.dir, append(args, slices.Sorted(maps.Keys(c.tests))...)...)
	return err
}

// version is the last element of the path of a module whose major version is not 0 or 1.
var version = regexp.MustCompile(`^v[0-9]+$`)

// goTool runs the go command in a folder, outside of all workspaces.
func goTool(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, failure.String())
	}
	return out, err
}
