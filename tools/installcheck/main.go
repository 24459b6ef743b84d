package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const library = "github.com/holdfast-go/holdfast"

// folders are the folders of the modules that are released after the root.
var folders = []string{
	"gocronlock", "inspector", shared, "middleware/connect", "middleware/echo", "middleware/echo4", "middleware/fiber",
	"middleware/grpc", "msglock/watermill", "otellock", command,
}

// shared is the folder of the one that only other modules import.
const shared = "middleware/internal/rpc"

// command is the folder of the one that is a program.
const command = "cmd/holdfast"

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: installcheck v0.1.0 folder")
	}
	scratch, err := os.MkdirTemp("", "installcheck")
	if err == nil {
		err = check(scratch, os.Args[1], os.Args[2])
		_ = os.RemoveAll(scratch)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// release is a version of all modules, in a proxy of its own.
type release struct {
	version, scratch, tree, proxy, bin string
	env                                []string
}

// check publishes the root in a proxy below scratch. Then it publishes and installs each of the modules that require it.
func check(scratch, version, out string) error {
	cache, err := output(".", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	downloaded, public, _ := strings.Cut(cache, "\n")
	r := release{
		version: version, scratch: scratch,
		tree: filepath.Join(scratch, "tree"), proxy: filepath.Join(scratch, "proxy"), bin: filepath.Join(scratch, "bin"),
	}
	r.env = []string{
		"GOWORK=off", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOBIN=" + r.bin, "GOMODCACHE=" + filepath.Join(scratch, "mod"),
		"GOPROXY=file://" + r.proxy + ",file://" + downloaded + "/cache/download," + public,
	}
	if err := export(r.tree); err != nil {
		return err
	}
	if err := publish(r.proxy, module.Version{Path: library, Version: version}, r.tree); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := r.add(folder, out); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return r.runReadme()
}

// add publishes the module in a folder, with the root as a requirement, and installs it.
func (r release) add(folder, out string) error {
	dir := filepath.Join(r.tree, folder)
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	edit := "go mod tidy"
	for _, path := range []string{library, library + "/" + shared} {
		if strings.Contains(string(goMod), "\t"+path+" v0.0.0\n") {
			edit = "go mod edit -dropreplace=" + path + " -require=" + path + "@" + r.version + " && " + edit
		}
	}
	if _, err := output(dir, r.env, "sh", "-ec", edit); err != nil {
		return err
	}
	if err := keep(dir, filepath.Join(out, folder)); err != nil {
		return err
	}
	m := module.Version{Path: library + "/" + folder, Version: r.version}
	if err := publish(r.proxy, m, dir); err != nil {
		return err
	}
	switch folder {
	case command:
		return r.install(m)
	case shared:
		return nil
	}
	return r.build(m)
}

// install installs the command, and asks it for its version.
func (r release) install(m module.Version) error {
	if _, err := output(r.scratch, r.env, "go", "install", m.String()); err != nil {
		return err
	}
	installed, err := output(r.scratch, r.env, filepath.Join(r.bin, "holdfast"), "--version")
	if err == nil && installed != r.version {
		err = fmt.Errorf("the installed command says that it is %q", installed)
	}
	return err
}

// build builds a new program that imports the package of a module.
func (r release) build(m module.Version) error {
	dir := filepath.Join(r.scratch, "user", path.Base(m.Path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	program := "package main\n\nimport _ \"" + m.Path + "\"\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		return err
	}
	_, err := output(dir, r.env, "sh", "-ec", "go mod init example.com/user && go get "+m.String()+" && go build -o program .")
	return err
}

// runReadme builds the first program of the README, outside of the repository, with all modules at their versions and all packages
// that users can import, and runs it twice.
func (r release) runReadme() error {
	readme, err := os.ReadFile(filepath.Join(r.tree, "README.md"))
	if err != nil {
		return err
	}
	_, program, ok := strings.Cut(string(readme), "```go\npackage main\n")
	program, _, closed := strings.Cut(program, "```")
	const server = "localhost:6379"
	if !ok || !closed || strings.Count(program, server) != 1 {
		return errors.New("README.md has no program that connects to " + server)
	}
	listed, err := output(r.tree, r.env, "go", "list", "-f", "{{if ne .Name \"main\"}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return err
	}
	imports, modules := "package main\n\nimport (\n", []string{"get", library + "@" + r.version}
	for path := range strings.FieldsSeq(listed) {
		if below := path + "/"; !strings.Contains(below, "/internal/") && !strings.Contains(below, "/tests/") {
			imports += "\t_ \"" + path + "\"\n"
		}
	}
	for _, folder := range folders {
		if folder != command && folder != shared {
			imports += "\t_ \"" + library + "/" + folder + "\"\n"
			modules = append(modules, library+"/"+folder+"@"+r.version)
		}
	}
	dir := filepath.Join(r.scratch, "user", "readme")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	socket := filepath.Join(dir, "redis.sock")
	for name, text := range map[string]string{
		"main.go": "package main\n" + strings.Replace(program, server, socket, 1), "imports.go": imports + ")\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"mod", "init", "example.com/user"}, modules, {"mod", "tidy"}, {"build", "-o", "program", "."}} {
		if _, err := output(dir, r.env, "go", args...); err != nil {
			return err
		}
	}
	stop, err := startRedis(dir, socket)
	if err != nil {
		return err
	}
	defer stop()
	for _, want := range []string{"replayed: false", "replayed: true"} {
		said, err := output(dir, r.env, filepath.Join(dir, "program"))
		if err != nil {
			return err
		}
		if !strings.Contains(said, want) {
			return fmt.Errorf("the program of the README printed %q, without %q", said, want)
		}
	}
	return nil
}

// startRedis starts a Redis server that listens on a socket.
func startRedis(dir, socket string) (stop func(), err error) {
	redis := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	if err := redis.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = redis.Process.Kill()
		_ = redis.Wait()
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return stop, nil
		}
	}
	stop()
	return nil, errors.New("redis-server does not listen")
}

// keep copies the files that a module needs at its tag.
func keep(dir, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// export writes the files of the last commit to a folder.
func export(tree string) error {
	root, err := output(".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	_, err = output(root, nil, "sh", "-ec", `mkdir "$0" && git archive HEAD | tar -x -C "$0"`, tree)
	return err
}

// publish writes a version of the module in a folder to the proxy. The modules below it are left out.
func publish(proxy string, m module.Version, dir string) error {
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	base := filepath.Join(proxy, m.Path, "@v", m.Version)
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		return err
	}
	for path, text := range map[string]string{
		base + ".info": `{"Version":"` + m.Version + `"}`,
		base + ".mod":  string(goMod),
		filepath.Join(filepath.Dir(base), "list"): m.Version + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	archive, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer archive.Close()
	return zip.CreateFromDir(archive, m, dir)
}

// output runs a program, and returns what it prints.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), err
}
