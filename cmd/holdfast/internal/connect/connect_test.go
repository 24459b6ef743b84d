package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

// TestOpen: each kind of URL makes its kind of client.
func TestOpen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from file\r\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	rdb, err := connect.Open(connect.Settings{
		URL: "redis://ada:from-url@host:7000/3?dial_timeout=2s", Username: "bob", Password: "p", PasswordFile: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := rdb.(*redis.Client).Options()
	if o.Addr != "host:7000" || o.DB != 3 || o.Username != "bob" || o.Password != "from file" || o.OnConnect == nil {
		t.Errorf("%+v", o)
	}
	_ = rdb.Close()
	rdb, err = connect.Open(connect.Settings{URL: "rediss+cluster://ada:p@a:1,b:2,c:3"})
	if err != nil {
		t.Fatal(err)
	}
	c := rdb.(*redis.ClusterClient).Options()
	if strings.Join(c.Addrs, " ") != "a:1 b:2 c:3" || c.Username != "ada" || c.Password != "p" || c.TLSConfig == nil || c.TLSConfig.ServerName != "" {
		t.Errorf("%+v", c)
	}
	_ = rdb.Close()
	rdb, err = connect.Open(connect.Settings{URL: "redis+sentinel://ada:p@a:1,b:2/main/5?sentinel_password=s"})
	if err != nil {
		t.Fatal(err)
	}
	if o := rdb.(*redis.Client).Options(); o.Username != "ada" || o.Password != "p" || o.DB != 5 {
		t.Errorf("%+v", o)
	}
	_ = rdb.Close()
}

// TestWrongSettings: errors say what is wrong, and never the password.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]connect.Settings{
		"no scheme":          {URL: "localhost:6379"},
		"unknown scheme":     {URL: "redis+ring://u:secret@a:1"},
		"name of the master": {URL: "redis+sentinel://u:secret@a:1,b:2"},
		"port is not a num":  {URL: "redis://u:secret@a:x"},
		"URL with TLS":       {URL: "redis://u:secret@a:1", CAFile: "/dev/null"},
		"from 0 on":          {URL: "redis://u:secret@a:1/-1"},
		"a number, from 0":   {URL: "redis+sentinel://u:secret@a:1/main/-2"},
		"no certificate":     {URL: "rediss://u:secret@a:1", CAFile: "/dev/null"},
		"certificate of":     {URL: "rediss://u:secret@a:1", CertFile: "/dev/null"},
		"file of the pass":   {URL: "redis://a:1", PasswordFile: "/no/such/file"},
		"empty first line":   {URL: "redis://u:secret@a:1", PasswordFile: "/dev/null"},
		"user needs a pass":  {URL: "redis://u@a:1"},
		"default user":       {URL: "redis+cluster://a:1", Username: "u"},
		"? is unknown":       {URL: "redis://u:secret@a:1?no_such_option=1"},
		"a wrong value":      {URL: "redis://u:secret@a:1?max_retries=secret"},
		"database is not":    {URL: "redis://u:secret@a:1/x"},
		"only the number":    {URL: "redis://u:secret@a:1/1/2"},
		"use one of redis":   {URL: "http://u:secret@a:1"},
		"two hex digits":     {URL: "redis://u:%secret@a:1"},
		"such as a blank":    {URL: "redis://u:secret [@a:1"},
		"control character":  {URL: "redis://u:secret\n@a:1"},
		"socket is missing":  {URL: "unix://u:secret@"},
		"three slashes":      {URL: "unix://run/redis.sock"},
		"as %2F":             {URL: "redis://u:sec/secret@a:1"},
		"%3F":                {URL: "redis+cluster://u:sec?secret@a:1"},
		"and %23":            {URL: "redis+sentinel://u:sec#secret@a:1/main"},
		"or set HOLDFAST":    {URL: "redis://u:6379/secret@a"},
	} {
		_, err := connect.Open(s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// TestHasPassword finds passwords that others could read.
func TestHasPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"redis://localhost":                          false,
		"redis://ada@localhost":                      false,
		"redis://ada:@localhost":                     false,
		"redis://:secret@localhost":                  true,
		"redis+cluster://ada:secret@a:1,b:2":         true,
		"redis+sentinel://a:1/m?sentinel_password=s": true,
		"redis://:sec/ret@localhost":                 true,
		"redis://ada:99?ret@localhost":               true,
		"redis://ada:sec#ret@localhost":              true,
		"ada:secret@localhost":                       true,
		"redis://ada@localhost:6379/0?client_name=b": false,
		"unix:///run/redis@1.sock":                   false,
	} {
		if connect.HasPassword(url) != want {
			t.Errorf("%s: want %v", url, want)
		}
	}
}

// TestServer: a server is named without user, password and parameters.
func TestServer(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://localhost:6379/3":                             "redis://localhost:6379/3",
		"rediss://u:p%40x@host:6379/0?dial_timeout=3s":         "rediss://host:6379/0",
		"unix://u:secret@/run/redis.sock?db=1":                 "unix:///run/redis.sock",
		"redis+sentinel://:secret@a:1,b:2/main?password=other": "redis+sentinel://a:1,b:2/main",
		"redis+cluster://u:secret@a:1,b:2":                     "redis+cluster://a:1,b:2",
	} {
		if got := connect.Server(url); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
}
