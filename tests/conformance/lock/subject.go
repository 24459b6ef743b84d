package lockconformance

import (
	"context"
	"io"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// Subject is what the suite is run on: a strategy and its rival, and where their locks live.
type Subject struct {
	// Servers is on how many servers a lock lives, each of them by itself. Tests that break them start their own.
	Servers int
	// Deployment is where a lock lives instead.
	Deployment *Deployment
	// Prefix precedes every name in Redis. It may bring a hash tag. Empty stands for the default of core.
	Prefix string
	// User is whom processes log in as, on servers by themselves. Nil is the default user, who may do everything.
	User *User
	// Connect makes what one process locks with from its connections, one to each server or to the deployment. The
	// options are the options of the test and, if the names have one, a prefix.
	Connect func(clients []redis.UniversalClient, opts ...core.Option) (Pair, io.Closer, error)
	// Patience lets a process wait for a server as long as a test does, if by itself it gives up sooner.
	Patience []core.Option

	shared []*place // by all tests that leave servers alone
}

// User is a user of Redis who may do what the rules say, in the words of ACL SETUSER. A test fails if it was denied
// something.
type User struct {
	Name, Password string
	Rules          []string
}

// Pair is what a process locks with: two strategies, or one twice, that exclude each other on the same name.
type Pair struct {
	Lock  Side // the strategy under test
	Rival Side
}

// Side is one strategy of a pair, and what has to be known of it.
type Side struct {
	Strategy core.Strategy
	// Shared is true if its holders exclude holders of the other side, but not each other.
	Shared bool
	// Members is how many locks of core one of its locks is made of, if several: hooks are told of each. The lock
	// of the same name has to be among them, and the first that is asked for.
	Members int
	// Waiters counts those who wait for a name in Redis, where waiters are in line one by one. Nil says that those
	// of one process are in line there, from the moment they begin to wait.
	Waiters func(ctx context.Context, name string) (int, error)
}

// Run runs the suite as parallel subtests of t.
func Run(t *testing.T, s Subject) {
	runGroups(t, s, exclusionTests, lossTests, waitingTests, reentryTests, retryTests, tokenTests, inputTests, lifeTests, hookTests)
}

// RunBrief runs the part of the suite that depends on the servers and on the rival: exclusion, loss of servers and leases,
// waiting, retries and tokens. It suffices where the strategy passes the whole suite elsewhere. With [testkit.Long] it is Run.
func RunBrief(t *testing.T, s Subject) {
	if testkit.Long() {
		Run(t, s)
		return
	}
	runGroups(t, s, exclusionTests, lossTests, waitingTests, retryTests, tokenTests)
}

func runGroups(t *testing.T, s Subject, groups ...map[string]func(*testing.T, Subject)) {
	if s.Deployment != nil {
		s.shared = []*place{s.Deployment.place}
	} else {
		for range s.Servers {
			s.shared = append(s.shared, startServer(t, s.User))
		}
		if s.User != nil {
			t.Cleanup((&world{t: t, places: s.shared}).nothingDenied)
		}
	}
	for _, group := range groups {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	}
}

// members is 1 for a plain strategy.
func (s Side) members() int { return max(s.Members, 1) }

// calls reports whether its lock of a name may call itself got: one that is made of several has a name of its own.
func (s Side) calls(name, got string) bool { return got == name || s.members() > 1 && got != "" }
