//go:build unix

package sql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// newOrder returns the order of payments on a new database of a system.
func newOrder(t *testing.T, s system) order {
	t.Helper()
	driver, dsn := s.create(t)
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	newBank(t, db, s.dialect)
	return order{Mode: withProof, Driver: driver, DSN: dsn, TTL: 300 * time.Millisecond, Level: s.level}
}

// onRedis returns the order with a server of its own.
func (o order) onRedis(t *testing.T) (order, *testkit.Server) {
	t.Helper()
	server := testkit.Start(t)
	options := server.Client().Options()
	o.Network, o.Redis = options.Network, options.Addr
	return o, server
}

// mustPayer returns a payer that is closed with the test.
func (o order) mustPayer(t *testing.T, at func(string) bool) *payer {
	t.Helper()
	p, err := o.payer(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// wantPaid lets a client pay, which comes again until it has its answer, and counts the debits.
func wantPaid(t *testing.T, p *payer, payment string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if answered, err := p.retry(ctx, payment); !answered || err != nil {
		t.Errorf("%s: answered %v, %v", payment, answered, err)
	}
	var sum tally
	if sum.count(t, p.db, []string{payment}); sum.twice+sum.lost > 0 {
		t.Errorf("%s: %v", payment, &sum)
	}
}

// TestReplyLost: the reply of a commit is lost, and InTx finds out that it has succeeded. So it does that it has failed, if the
// connection breaks before the commit.
func TestReplyLost(t *testing.T) {
	t.Parallel()
	eachSystem(t, testReplyLost)
}

func testReplyLost(t *testing.T, s system) {
	o, _ := newOrder(t, s).onRedis(t)
	o.TTL = within // nothing waits for its end
	for i, step := range []string{replyLost, beforeCommit, beforeInsert, afterInsert} {
		if s.dialect == sqllock.SQLite && step != replyLost {
			continue // it has no connection that could break
		}
		var done atomic.Bool
		p := o.mustPayer(t, func(at string) bool { return at == step && done.CompareAndSwap(false, true) })
		payment := fmt.Sprintf("payment:%d", i)
		err := p.pay(t.Context(), payment, nil)
		began := step != afterInsert // else InTx may try again in a new transaction, as some drivers let it see
		if step == replyLost && err != nil || step != replyLost && (began && err == nil || errors.Is(err, core.ErrOutcomeUnknown)) {
			t.Errorf("%s: %v", step, err)
		}
		wantPaid(t, p, payment)
	}
}

// TestCommitWithoutReply: a network that swallows the commit ends InTx within its time, although the context has no deadline, and
// what has become of the commit is found out over another connection.
func TestCommitWithoutReply(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server := databases.StartPostgreSQL(t)
		testCommitWithoutReply(t, server, sqllock.Postgres, func(dsn, host, port string) string {
			_, rest, _ := strings.Cut(dsn, " ")
			return fmt.Sprintf("host=%s port=%s sslmode=disable %s", host, port, rest)
		})
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		server := databases.StartMariaDB(t)
		testCommitWithoutReply(t, server.Server, sqllock.MySQL, func(dsn, host, port string) string {
			user, _, _ := strings.Cut(dsn, "@")
			return user + "@tcp(" + host + ":" + port + ")" + dsn[strings.LastIndex(dsn, "/"):]
		})
	})
}

func testCommitWithoutReply(t *testing.T, server *databases.Server, dialect sqllock.Dialect, through func(dsn, host, port string) string) {
	t.Helper()
	o, _ := newOrder(t, system{"read committed", dialect, sql.LevelReadCommitted, on(server)}).onRedis(t)
	relay := testkit.NewRelay(t, "unix", server.Socket())
	host, port, err := net.SplitHostPort(relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	o.DSN = through(o.DSN, host, port)
	for _, d := range []testkit.Direction{testkit.ToServer, testkit.ToClient} {
		var done atomic.Bool
		p := o.mustPayer(t, func(at string) bool {
			if at == beforeCommit && done.CompareAndSwap(false, true) {
				relay.DropExisting(d)
			}
			return false
		})
		payment := fmt.Sprintf("payment:%d", d)
		ended := make(chan error, 1)
		go func() { ended <- p.pay(context.WithoutCancel(t.Context()), payment, nil) }()
		select {
		case err := <-ended:
			// The server has got the commit, or holds the transaction open until it notices that its client is gone.
			if d == testkit.ToClient && err != nil || d == testkit.ToServer && !errors.Is(err, core.ErrUndecided) {
				t.Errorf("%d: %v", d, err)
			}
			relay.Reset()
			relay.Heal()
		case <-time.After(within):
			t.Fatalf("%d: InTx waits for ever", d)
		}
		wantPaid(t, p, payment)
	}
}

// TestDatabaseKilled kills the database between its commit and the reply, and before the commit.
func TestDatabaseKilled(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(*testing.T) (*databases.Server, sqllock.Dialect){
		"PostgreSQL": func(t *testing.T) (*databases.Server, sqllock.Dialect) {
			return databases.StartPostgreSQL(t, "synchronous_commit=on"), sqllock.Postgres
		},
		"MariaDB": func(t *testing.T) (*databases.Server, sqllock.Dialect) {
			return databases.StartMariaDB(t).Server, sqllock.MySQL
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dialect := server(t)
			for level, isolation := range levels {
				o, _ := newOrder(t, system{level, dialect, isolation, on(server)}).onRedis(t)
				for i, step := range []string{replyLost, beforeCommit} {
					var done atomic.Bool
					p := o.mustPayer(t, func(at string) bool {
						if at != step || !done.CompareAndSwap(false, true) {
							return false
						}
						server.Crash()
						go func() {
							time.Sleep(500 * time.Millisecond) // clients meet no database
							server.Restart()
						}()
						return true
					})
					wantPaid(t, p, fmt.Sprintf("payment:%d", i))
				}
			}
		})
	}
	t.Run("SQLite", func(t *testing.T) { // which is in the process
		t.Parallel()
		o, _ := newOrder(t, onSQLite).onRedis(t)
		for _, step := range []string{beforeCommit, replyLost} {
			o.Step, o.Fault, o.Payments = step, killed, []string{"payment:" + step}
			w := startWorker(t, o)
			if !w.arrive() {
				t.Fatal("the payment has passed its step")
			}
			w.end()
			wantPaid(t, o.mustPayer(t, nil), o.Payments[0])
		}
	})
}

// TestRedisFaults flushes Redis, kills it, and has it fail over to an empty replica, in the midst of a payment.
func TestRedisFaults(t *testing.T) {
	t.Parallel()
	server := databases.StartPostgreSQL(t)
	bank := system{"read committed", sqllock.Postgres, sql.LevelReadCommitted, on(server)}
	for _, step := range []string{beforeInsert, afterInsert, replyLost, beforeComplete} {
		for name, fault := range map[string]func(rdb *testkit.Server){
			"flushed": func(rdb *testkit.Server) { rdb.Client().FlushAll(context.Background()) },
			"killed":  func(rdb *testkit.Server) { rdb.Kill(); rdb.Restart() },
		} {
			t.Run(step+", "+name, func(t *testing.T) {
				t.Parallel()
				o, rdb := newOrder(t, bank).onRedis(t)
				other := o.mustPayer(t, nil)
				var done atomic.Bool
				p := o.mustPayer(t, func(at string) bool {
					if at == step && done.CompareAndSwap(false, true) {
						fault(rdb)
						go func() { // beside it
							ctx, cancel := context.WithTimeout(context.Background(), within)
							defer cancel()
							_, _ = other.retry(ctx, "payment:1")
						}()
						time.Sleep(100 * time.Millisecond)
					}
					return false
				})
				wantPaid(t, p, "payment:1")
				wantPaid(t, other, "payment:1")
			})
		}
		t.Run(step+", failed over", func(t *testing.T) {
			t.Parallel()
			o := newOrder(t, bank)
			master, replica := testkit.Start(t), testkit.Start(t) // which has got nothing of the master
			var now atomic.Pointer[redis.Options]
			now.Store(master.Client().Options())
			payer := func(at func(string) bool) *payer {
				p, err := o.payerOn(redis.NewClient(&redis.Options{
					ContextTimeoutEnabled: true,
					Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, now.Load().Network, now.Load().Addr)
					},
				}), at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.close)
				return p
			}
			var done atomic.Bool
			p := payer(func(at string) bool {
				if at == step && done.CompareAndSwap(false, true) {
					master.Kill()
					now.Store(replica.Client().Options())
				}
				return false
			})
			wantPaid(t, p, "payment:1")
			wantPaid(t, payer(nil), "payment:1")
		})
	}
}
