package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	library = "github.com/holdfast-go/holdfast"
	folder  = "cmd/holdfast"
	command = library + "/" + folder
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: installcheck v0.1.0")
	}
	scratch, err := os.MkdirTemp("", "installcheck")
	if err == nil {
		err = check(scratch, os.Args[1])
		_ = os.RemoveAll(scratch)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// check publishes both modules in a proxy below scratch, and installs the command from it.
func check(scratch, version string) error {
	cache, err := output(".", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	downloaded, public, _ := strings.Cut(cache, "\n")
	proxy, tree, bin := filepath.Join(scratch, "proxy"), filepath.Join(scratch, "tree"), filepath.Join(scratch, "bin")
	env := []string{
		"GOWORK=off", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOBIN=" + bin, "GOMODCACHE=" + filepath.Join(scratch, "mod"),
		"GOPROXY=file://" + proxy + ",file://" + downloaded + "/cache/download," + public,
	}
	edit := "go mod edit -dropreplace=" + library + " -require=" + library + "@" + version + " && go mod tidy"
	for _, step := range []func() error{
		func() error { return export(tree) },
		func() error { return publish(proxy, module.Version{Path: library, Version: version}, tree) },
		func() error { _, err := output(filepath.Join(tree, folder), env, "sh", "-ec", edit); return err },
		func() error { return printGoMod(filepath.Join(tree, folder)) },
		func() error {
			return publish(proxy, module.Version{Path: command, Version: version}, filepath.Join(tree, folder))
		},
		func() error { _, err := output(scratch, env, "go", "install", command+"@"+version); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	installed, err := output(scratch, env, filepath.Join(bin, "holdfast"), "--version")
	if err == nil && installed != version {
		err = fmt.Errorf("the installed command says that it is %q", installed)
	}
	return err
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

func printGoMod(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	fmt.Printf("%s/go.mod at the tag:\n\n%s", folder, text)
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
