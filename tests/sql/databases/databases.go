//go:build unix

// Package databases starts PostgreSQL and MariaDB for tests, on unix sockets in temporary directories, and opens SQLite. It skips a
// test whose server cannot be had, with the reason. HOLDFAST_DATABASES=required makes that a failure. On Debian, "make databases"
// installs both. Both refuse to run as root. For root they run as another user or, where that user cannot execute them, in a user
// namespace.
package databases

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "github.com/lib/pq"              // the driver postgres
	_ "modernc.org/sqlite"             // the driver sqlite
)

// Server is a database server of its own, which ends with the test.
type Server struct {
	*process
	admin   *sql.DB
	connect func(database string) *sql.DB
	driver  string
	dsn     func(database string) string
	created atomic.Int64
}

// Open creates a database, and connects to it until the test ends.
func (s *Server) Open(t testing.TB) *sql.DB {
	t.Helper()
	return s.open(t, s.connect)
}

func (s *Server) open(t testing.TB, connect func(database string) *sql.DB) *sql.DB {
	t.Helper()
	db := connect(s.Create(t))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Create creates a database and returns its name.
func (s *Server) Create(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.created.Add(1))
	if _, err := s.admin.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return name
}

// CreateSchema is Create for tables that need no database of their own. PostgreSQL makes a schema in less than a
// hundredth of the time of a database, for MariaDB both are one. It returns what [sql.Open] needs.
func (s *Server) CreateSchema(t testing.TB) (dsn string) {
	t.Helper()
	if s.driver != "pgx" {
		return s.DSN(s.Create(t))
	}
	name := fmt.Sprintf("test%d", s.created.Add(1))
	if _, err := s.admin.ExecContext(context.Background(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return s.DSN("postgres") + " search_path=" + name
}

// Driver and DSN are what [sql.Open] needs for a database, also in another process.
func (s *Server) Driver() string { return s.driver }

// DSN returns the name of a database for [sql.Open].
func (s *Server) DSN(database string) string { return s.dsn(database) }

// Socket returns the path of the socket on which the server listens.
func (s *Server) Socket() string {
	if s.driver == "pgx" {
		return s.host.path(".s.PGSQL.5432")
	}
	return s.host.path("socket")
}

// Crash ends the server at once, without a checkpoint. It has to recover when it starts again.
func (s *Server) Crash() {
	if s.driver == "pgx" {
		s.end(syscall.SIGQUIT) // which also ends its children
		return
	}
	s.end(syscall.SIGKILL)
}

// Restart starts the server again.
func (s *Server) Restart() { s.start() }

// logVersion logs which server the tests run on.
func (s *Server) logVersion(t testing.TB) {
	t.Helper()
	var version string
	if err := s.admin.QueryRowContext(context.Background(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Log(version)
}

// StartPostgreSQL starts a cluster until the test ends.
func StartPostgreSQL(t testing.TB, settings ...string) *Server {
	t.Helper()
	initdb := find(t, "initdb", "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
	if real, err := filepath.EvalSymlinks(initdb); err == nil {
		initdb = real
	}
	h := newHost(t, initdb, "postgres")
	data := h.path("data")
	h.run(t, initdb, "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
	s := &Server{driver: "pgx", dsn: func(database string) string {
		return fmt.Sprintf("host=%s user=postgres dbname=%s", h.dir, database)
	}}
	s.connect = func(database string) *sql.DB {
		db, err := sql.Open(s.driver, s.dsn(database))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	s.admin = s.connect("postgres")
	args := []string{
		"-D", data, "-k", h.dir, "-c", "listen_addresses=", "-c", "max_connections=200",
		"-c", "dynamic_shared_memory_type=mmap", // in data: what a crash leaves in /dev/shm meets other servers of the same user
	}
	if len(settings) == 0 {
		settings = []string{"fsync=off"}
	}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.process = h.start(t, syscall.SIGQUIT, s.admin.Ping, filepath.Join(filepath.Dir(initdb), "postgres"), args...)
	t.Cleanup(func() { _ = s.admin.Close() })
	s.logVersion(t)
	return s
}

// MariaDB is a server of MariaDB.
type MariaDB struct {
	*Server
	config func(database string) *mysql.Config
}

// StartMariaDB starts a server until the test ends.
func StartMariaDB(t testing.TB) *MariaDB {
	t.Helper()
	server, install := find(t, "mariadbd"), find(t, "mariadb-install-db")
	h := newHost(t, server, "mysql")
	data, socket := h.path("data"), h.path("socket")
	temporary := "--tmpdir=" + h.dir // a server that starts removes the temporary tables of others in its own
	h.run(t, install, "--no-defaults", "--datadir="+data, temporary, "--auth-root-authentication-method=normal", "--skip-test-db")
	m := &MariaDB{&Server{driver: "mysql"}, func(database string) *mysql.Config {
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr, config.DBName = "root", "unix", socket, database
		config.Logger = &mysql.NopLogger{}
		return config
	}}
	m.dsn = func(database string) string { return m.config(database).FormatDSN() }
	m.connect = func(database string) *sql.DB { return connector(t, m.config(database)) }
	m.admin = m.connect("")
	m.process = h.start(t, syscall.SIGTERM, m.admin.Ping, server, "--no-defaults", "--datadir="+data, temporary, "--socket="+socket,
		"--skip-networking", "--pid-file="+filepath.Join(h.dir, "pid"), "--innodb-flush-log-at-trx-commit=0",
		"--max-connections=200")
	t.Cleanup(func() { _ = m.admin.Close() })
	m.logVersion(t)
	return m
}

// OpenWith is Open with other settings of the driver.
func (m *MariaDB) OpenWith(t *testing.T, edit func(*mysql.Config)) *sql.DB {
	t.Helper()
	return m.open(t, func(database string) *sql.DB {
		config := m.config(database)
		edit(config)
		return connector(t, config)
	})
}

func connector(t testing.TB, config *mysql.Config) *sql.DB {
	c, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	return sql.OpenDB(c)
}

// SQLite returns the name of a new database in a file.
func SQLite(t testing.TB) (dsn string) {
	t.Helper()
	return "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)"
}
