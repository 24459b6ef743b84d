// Package conformance_test runs the conformance tests of Connect (connectrpc.com/conformance) on its servers with guards.
package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/conformance/guards"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const module = "connectrpc.com/conformance"

// servers are the servers of the module, each with where its source gets the guards.
var servers = map[string]struct{ file, before, after string }{
	"referenceserver": {
		"internal/app/referenceserver/server.go",
		"interceptors := []connect.Interceptor{serverNameHandlerInterceptor{}}",
		"interceptors := append([]connect.Interceptor{serverNameHandlerInterceptor{}}, guards.Connect()...)",
	},
	"grpcserver": {
		"internal/app/grpcserver/server.go",
		"server := grpc.NewServer(",
		"server := grpc.NewServer(guards.Unary(), guards.Streams(),",
	},
}

// run runs a command in this folder.
func run(t *testing.T, env []string, name string, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), append(env, "GOWORK=off")...)
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err = cmd.Run(); err != nil {
		t.Logf("%s %s: %v\n%s", name, strings.Join(args, " "), err, failure.String())
	}
	return out.String(), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build builds the runner of the module, and its servers with guards. It returns the folders of the programs and of the module.
func build(t *testing.T) (bin, source string) {
	t.Helper()
	bin = t.TempDir()
	source, err := run(t, nil, "go", "list", "-m", "-f", "{{.Dir}}", module)
	must(t, err)
	source = strings.TrimSpace(source)
	guarded := filepath.Join(bin, "source")
	must(t, os.CopyFS(guarded, os.DirFS(source)))
	for _, server := range servers {
		file := filepath.Join(guarded, server.file)
		before, err := os.ReadFile(file)
		must(t, err)
		after := strings.Replace(string(before), server.before, server.after, 1)
		if after == string(before) {
			t.Fatalf("%s has no %q", server.file, server.before)
		}
		after = strings.Replace(after, "import (", "import (\n\t\"github.com/holdfast-go/holdfast/lab/conformance/guards\"", 1)
		must(t, os.Chmod(file, 0o600))
		must(t, os.WriteFile(file, []byte(after), 0o600))
	}
	mod := filepath.Join(bin, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(bin, name), text, 0o600))
	}
	_, err = run(t, nil, "go", "mod", "edit", "-replace", module+"="+guarded, mod)
	must(t, err)
	_, err = run(t, nil, "go", "build", "-o", bin, module+"/cmd/connectconformance")
	must(t, err)
	for name := range servers {
		_, err = run(t, nil, "go", "build", "-modfile", mod, "-o", bin, module+"/cmd/"+name)
		must(t, err)
	}
	return bin, source
}

// TestConformance: servers with guards on each method pass all cases, and so does what their guards have recorded. known lists the cases
// that the module expects its own servers to fail, without a guard too.
func TestConformance(t *testing.T) {
	bin, source := build(t)
	redis := guards.Redis + "=" + testkit.Start(t).Options().Addr
	ofModule := func(file string) string { return filepath.Join(source, "testing", file) }
	for _, test := range []struct{ name, server, config, known string }{
		{"connect", "referenceserver", "config.yaml", "referenceserver-known-failing.txt"},
		{"grpc-go", "grpcserver", ofModule("grpc-impls-config.yaml"), "grpcserver-known-failing.txt"},
		{"grpc-go for the web", "grpcserver", ofModule("grpc-web-server-impl-config.yaml"), "grpcserver-web-known-failing.txt"},
	} {
		for mode, env := range map[string][]string{"first": {redis}, "replayed": {redis, guards.Twice + "=true"}} {
			t.Run(test.name+"/"+mode, func(t *testing.T) {
				out, err := run(t, env, filepath.Join(bin, "connectconformance"), "--mode", "server", "--conf", test.config,
					"--known-failing", "@"+ofModule(test.known), "--", filepath.Join(bin, test.server))
				if t.Log(out); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
