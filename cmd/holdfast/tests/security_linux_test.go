package holdfast_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// password is the password of the Redis user in tests.
const password = "of-nobody-else"

// documentedRights returns those that docs/keys-and-rights.md says a user needs.
func documentedRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/keys-and-rights.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?s)A Redis user needs (.*?)\\.\n").FindSubmatch(text)
	if section == nil {
		t.Fatal("docs/keys-and-rights.md lists no rights")
	}
	return strings.Join(regexp.MustCompile("[~&+][^\\s`]+").FindAllString(string(section[1]), -1), " ")
}

// startVault starts a server that has TLS, demands certificates, and has one user beside the default one.
func startVault(t *testing.T, a *testkit.Authority) *testkit.Server {
	t.Helper()
	return testkit.Start(t, testkit.TLS(a), testkit.Config("requirepass", "of-the-master"),
		testkit.Config("user", "locker on >"+password+" resetchannels "+documentedRights(t)))
}

// TestTLS: the command reaches a server with TLS as a user with the rights of docs/keys-and-rights.md, whether the files and the
// password come from flags, from variables or from the URL.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	srv, files := startVault(t, a), a.ClientFiles()
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--tls-ca", files.Authority, "--tls-cert", files.Cert, "--tls-key", files.Key}
	variables := []string{"HOLDFAST_TLS_CA=" + files.Authority, "HOLDFAST_TLS_CERT=" + files.Cert, "HOLDFAST_TLS_KEY=" + files.Key}
	for name, cmd := range map[string]*exec.Cmd{
		"flags, password in a variable": with(command(t, "", append(flags, "--redis", "rediss://locker@"+srv.TLSAddr(),
			"exec", "n", "--", "echo", "ran")...), "HOLDFAST_REDIS_PASSWORD="+password),
		"flags, password in a file": command(t, "rediss://"+srv.TLSAddr(), append(flags, "--redis-user", "locker",
			"--password-file", secret, "exec", "n", "--", "echo", "ran")...),
		"variables, password in the URL": with(command(t, "rediss://locker:"+password+"@"+srv.TLSAddr(),
			"exec", "n", "--", "echo", "ran"), variables...),
		"variables alone": with(command(t, "rediss://"+srv.TLSAddr(), "exec", "n", "--", "echo", "ran"),
			append(variables, "HOLDFAST_REDIS_USER=locker", "HOLDFAST_REDIS_PASSWORD_FILE="+secret)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finish(t, cmd).want(t, 0, "ran\n", "")
		})
	}
}

// refusesTLS is the text for a client whose certificate the server refuses.
const refusesTLS = "Redis refuses the TLS connection of this client"

// TestLoginRefused: a server that cannot be trusted, or that refuses, is an error that says why, without the password. The
// command does not run.
func TestLoginRefused(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	srv, files, strangers := startVault(t, a), a.ClientFiles(), testkit.NewAuthority(t).ClientFiles()
	mixed := testkit.Files{Authority: files.Authority, Cert: strangers.Cert, Key: strangers.Key}
	for name, test := range map[string]struct {
		user, password string
		files          testkit.Files
		says           string
	}{
		"another authority's server": {"locker", password, testkit.Files{Authority: strangers.Authority, Cert: files.Cert, Key: files.Key}, "signed by unknown authority"},
		"no authority":               {"locker", password, testkit.Files{Cert: files.Cert, Key: files.Key}, "certificate"},
		// The server closes the connection behind its refusal, so a client may see only the end.
		"another authority's client": {"locker", password, mixed, refusesTLS},
		"no certificate":             {"locker", password, testkit.Files{Authority: files.Authority}, refusesTLS},
		"wrong user":                 {"nobody", password, files, "WRONGPASS"},
		"wrong password":             {"locker", password + "-not", files, "WRONGPASS"},
		"no password":                {"", "", files, "NOAUTH"},
		"no TLS":                     {"locker", password, testkit.Files{}, "no answer from Redis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := "rediss"
			if name == "no TLS" {
				scheme = "redis"
			}
			url := fmt.Sprintf("%s://%s:%s@%s", scheme, test.user, test.password, srv.TLSAddr())
			got := finish(t, with(command(t, url, "exec", "-n", "n", "--", "echo", "ran"), "HOLDFAST_TLS_CA="+test.files.Authority,
				"HOLDFAST_TLS_CERT="+test.files.Cert, "HOLDFAST_TLS_KEY="+test.files.Key))
			says := test.says
			if says == refusesTLS && strings.Contains(got.stderr, "no answer from Redis") {
				says = ""
			}
			got.want(t, 69, "", says)
			if strings.Contains(got.stderr+got.stdout, password) || got.stdout != "" {
				t.Errorf("printed %+v", got)
			}
		})
	}
}

// TestPasswordHidden: the password is not among the arguments of any process, and one among the arguments is refused.
func TestPasswordHidden(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t, testkit.Config("requirepass", password))
	started := start(t, with(command(t, urlOf(srv), "exec", "n", "--", "sleep", "60"), "HOLDFAST_REDIS_PASSWORD="+password))
	p := awaitCommand(t, started.pid)
	for _, pid := range []int{p.parent, p.supervisor, p.command} {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(args) == 0 || strings.Contains(string(args), password) {
			t.Errorf("arguments %q, error %v", args, err)
		}
	}
	for _, args := range [][]string{
		{"--redis", "redis://:" + password + "@localhost", "ls"},
		{"exec", "--redis", "redis+sentinel://localhost/m?sentinel_password=" + password, "n", "--", "true"},
		{"--redis=redis://:" + password + "\xff@localhost", "ls"},
		{"ls", "a", "redis://:" + password + "@localhost"},
		{"exec", "-w", "redis://:" + password + "@localhost", "n", "--", "true"},
	} {
		got := run(t, urlOf(srv), args...)
		got.want(t, 64, "", "other users")
		if strings.Contains(got.stderr, password) {
			t.Errorf("printed %q", got.stderr)
		}
	}
}

// TestPasswordInWrongURL: a password whose characters were not escaped is in no error, wherever the URL comes from, and among
// the arguments it is refused as any other.
func TestPasswordInWrongURL(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"redis", "rediss", "redis+cluster", "redis+sentinel"} {
		for _, user := range []string{":Zm9v/YmFy", ":Zm9v?YmFy", ":Zm9v#YmFy", "app:99/YmFy", "app:99#YmFy", "app:Zm9v%YmFy"} {
			url := scheme + "://" + user + "@localhost:1/main"
			argument := command(t, "", "exec", "--redis", url, "n", "--", "true")
			for says, cmd := range map[string]*exec.Cmd{
				"the URL of Redis: ": command(t, url, "ls"),
				"URL of Redis:":      with(command(t, "", "exec", "n", "--", "true"), "REDIS_URL="+url),
				"has a password":     argument,
			} {
				got := finish(t, cmd)
				got.want(t, 64, "", says)
				if strings.Contains(got.stderr, "Zm9") || strings.Contains(got.stderr, "YmF") || strings.Contains(got.stderr, "99") {
					t.Errorf("%s: printed %q", url, got.stderr)
				}
			}
		}
	}
}

// TestNoRightToTime: for a user without the right to TIME the error says so, and not that Redis is unreachable.
func TestNoRightToTime(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t, testkit.Config("user", "locker on >"+password+" ~* &* +@all -time"))
	cmd := command(t, urlOf(srv), "--redis-user", "locker", "once", "--tick", "1h", "n", "--", "echo", "ran")
	finish(t, with(cmd, "HOLDFAST_REDIS_PASSWORD="+password)).want(t, 69, "", "holdfast: Redis refuses the user: NOPERM")
	cmd = command(t, urlOf(srv), "--redis-user", "locker", "once", "--tick", "1h", "n", "--", "echo", "ran")
	finish(t, with(cmd, "HOLDFAST_REDIS_PASSWORD=wrong")).want(t, 69, "", "holdfast: Redis refuses the user: WRONGPASS")
}
