package suites

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
)

// interop is the name that the cases of a suite's client and server have as a package.
const interop = "interop"

// cases are those of interop/interop_test.sh.
var cases = []string{
	"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream", "timeout_on_sleeping_server",
	"cancel_after_begin", "cancel_after_first_response", "status_code_and_message", "special_status_message", "custom_metadata",
	"unimplemented_method", "unimplemented_service", "orca_per_rpc", "orca_oob", "rpc_soak", "channel_soak",
}

// compileInterop compiles grpc-go's server of its interoperability tests, with a file that installs the guard, and their client.
func (c *Copy) compileInterop(to string) error {
	install := fmt.Sprintf("package main\n\nimport (\n\tsuite %q\n\tinstalled %q\n)\n\nfunc init() { suite.HoldfastSuite = installed.Install() }\n",
		c.Suite.Module, path.Join(c.Suite.Module, folder, c.Suite.Guard))
	if err := os.WriteFile(filepath.Join(c.dir, "interop/server/zz_holdfast_suite.go"), []byte(install), 0o600); err != nil {
		return err
	}
	for _, program := range []string{"server", "client"} {
		if _, err := goTool(c.dir, "build", "-o", filepath.Join(to, "interop-"+program), "./interop/"+program); err != nil {
			return err
		}
	}
	c.interop = to
	return nil
}

// runInterop lets the client call a server with this guard, in these cases.
func (c *Copy) runInterop(ctx context.Context, results Results, cases []string, guard, redis string) error {
	if len(cases) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return err
	}
	server := exec.CommandContext(ctx, filepath.Join(c.interop, "interop-server"), "--use_tls", "--port", port)
	server.Dir = c.dir
	server.Env = append(os.Environ(), guarded(guard, redis)...)
	if err = server.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = server.Wait()
	}()
	if err = reachable(ctx, port); err != nil {
		return err
	}
	for _, name := range cases {
		test, outcome := Test{interop, name}, Passed
		output, err := c.call(ctx, port, name)
		if err != nil {
			outcome = Failed
		}
		results.Outcomes[test], results.Output[test] = outcome, output
	}
	return nil
}

// call runs a case of the client.
func (c *Copy) call(ctx context.Context, port, name string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, filepath.Join(c.interop, "interop-client"), "--use_tls", "--use_test_ca",
		"--server_host_override=foo.test.google.fr", "--server_port", port, "--test_case", name,
		`--service_config_json={"loadBalancingConfig": [{"test_backend_metrics_load_balancer": {}}]}`)
	client.Dir = c.dir
	var out bytes.Buffer
	client.Stdout, client.Stderr = &out, &out
	err = client.Run()
	return out.String(), err
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// reachable waits until something listens.
func reachable(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// guarded returns the environment of a process with a guard.
func guarded(guard, redis string) []string {
	if guard == "" {
		return nil
	}
	return []string{installed.Redis + "=" + redis, installed.Guard + "=" + guard}
}
