//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestFirstRunShowsProgress: the command of the README prints something while it compiles for the first time.
func TestFirstRunShowsProgress(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^go (run .*\./examples/flashsale)$`).FindSubmatch(readme)
	if command == nil {
		t.Fatal("the README does not run the flash sale")
	}
	cmd := exec.Command("go", strings.Fields(string(command[1]))...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOCACHE="+t.TempDir(), "GOFLAGS=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to interrupt the compilers too
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() || strings.Contains(lines.Text(), "replicas of the shop") {
		t.Errorf("the first line is %q, want one of the compilation", lines.Text())
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // until nobody writes any more
	}
	_ = cmd.Wait() // it was interrupted
}
