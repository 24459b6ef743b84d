// Package seal hands from core to the packages of this repository what users of a lock do not need, so that core exports
// no names for it.
package seal

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"time"
)

// Facts are what adapters know of a value of core beyond its API: facts of all values, and facts of its kind.
type Facts struct {
	// Logger is the logger of [core.WithLogger]. It is never nil.
	Logger *slog.Logger
	// Hooks is the *core.Hooks of the client. It is nil for a value that has no client.
	Hooks any
	// Instance is the text of [core.WithInstance]. It is "" for a value that has no client.
	Instance string
	// NewOwner is the core.LockOption that gives each call a new owner, whatever its context, its client and other options say.
	// So no call enters a lock that is held, and the owner leads to the instance of its client. It is nil except for a client and
	// a lock.
	NewOwner Option

	// Lock has its zero value except for a lock, and Election is "" except for an election, whose name it is, without prefix.
	Lock     Lock
	Election string
	// Client, Lease and Attempt are nil except for a value of that kind.
	Client  Client
	Lease   Lease
	Attempt Attempt
	// NewProving makes what the store of a proof has to know of a run that began without Redis. It is nil except for a Once with a
	// proof.
	NewProving func() *Proving
}

// Client is what adapters do with a client of core beyond its API.
type Client interface {
	Names
	// TTL is the one that leases have unless an option of the lock says otherwise.
	TTL() time.Duration
	// Eval asks Redis once to run a script of an adapter, which declares the one key "holdfast:<kind>" of a name. Its errors are those
	// of [core.Once.Peek].
	Eval(ctx context.Context, script, kind, name string, args ...any) (any, error)
	// Together calls a function n times concurrently, and returns the errors by index. The first command that each call sends to
	// Redis with its context leaves in one pipeline per master with the requests of the others, in the order of i. A call that waits for
	// another one before it has sent a command must call alone first.
	Together(ctx context.Context, n int, do func(ctx context.Context, i int, alone func()) error) []error
}

// Lock is what adapters know of a lock of core beyond its API.
type Lock struct {
	// Mode is the [core.Mode] in which it is acquired. For a Multi it is the mode of readers if all members are readers, and
	// otherwise the mode of its first other member. It is "" for a Multi without members.
	Mode string
	// Limit is how many owners can hold it at a time: n of a semaphore, divided by the permits of each. For a Multi of
	// semaphores it is the smallest of its members' limits. It is 0 for other locks.
	Limit int
}

// Lease is what guards do with a lease of core, or with an attempt, beyond its API.
type Lease interface {
	// Bind returns a context that descends from ctx, carries what the own context of the lease carries, and ends with ctx or with
	// the lease. The caller must call cancel when the context is no longer needed.
	Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc)
}

// Attempt is what guards do with an attempt of core beyond its API.
type Attempt interface {
	Lease
	// Began returns when the key was claimed, by the server's clock.
	Began() time.Time
	// Proving is the run as the store of its proof sees it. It is nil without core.WithProof.
	Proving() *Proving
	// Withdraw ends an attempt whose work has not begun. The next one may begin at once, and has the same number, as if this
	// attempt had never been. It returns the errors of Release.
	Withdraw(ctx context.Context) error
}

// AttemptOf returns what guards do with an attempt of core. It is nil for a nil attempt.
func AttemptOf(x interface{ facts() Facts }) Attempt { return FactsOf(x).Attempt }

// Names leads from the log of a client to names in Redis, and back.
type Names interface {
	// Digest returns what the log shows in place of the lock or the election of that name, or of the record of that key: 8 hex
	// digits.
	Digest(name string, record bool) string
	// FindDigest looks for the locks that are held, and the records, with a digest of the log. That is either what Digest
	// returns, in either case, or the 43 characters of a key_hash, which the guards for HTTP and tasks log and end their names
	// with. It walks over all keys, so stop it after the first match, or end ctx. A lock that was released has left no name. A
	// digest of another form is an error.
	FindDigest(ctx context.Context, digest string) iter.Seq2[Named, error]
}

// Named is what has a digest.
type Named struct {
	// Name of the lock, or key of the record, without prefix.
	Name string
	// Record is true for the key of a record, and false for the name of a lock or an election.
	Record bool
}

// NamesOf returns the names of a client of core.
func NamesOf(x interface{ facts() Facts }) Names { return FactsOf(x).Client }

// Source returns the facts of a value.
type Source interface{ Facts() Facts }

// Handle is embedded in the values of core that have facts, by an unexported name. The zero value has no facts but a logger.
type Handle struct{ source Source }

// HandleOf returns the handle of a source.
func HandleOf(s Source) Handle { return Handle{s} }

func (h Handle) facts() Facts {
	if h.source == nil {
		return Facts{Logger: slog.Default()}
	}
	return h.source.Facts()
}

// FactsOf returns the facts of a client, a lock, a lease or an election of core. A nil pointer has the facts of a zero
// value.
func FactsOf(x interface{ facts() Facts }) Facts {
	if v := reflect.ValueOf(x); v.Kind() == reflect.Pointer && v.IsNil() {
		return Handle{}.facts()
	}
	return x.facts()
}

// Option is an option of a guard, from core, from internal/guard or from an adapter: a type that embeds a [Mark].
type Option interface{ mark() Mark }

// Mark makes a type an [Option], and describes it to guards.
type Mark struct {
	// Name is what users call it: "core.WithTTL".
	Name string
	// Value is the argument if guards read it, and nil otherwise.
	Value any
}

func (m Mark) mark() Mark { return m }

// MarkOf returns the mark of an option.
func MarkOf(o Option) Mark { return o.mark() }

// Page is one page of the lists of a core client, for programs that show one at a time and continue with its cursor.
type Page struct {
	// Cursor is the Next of the page before, and "" for the first page.
	Cursor string
	// Limit is about how many entries the page has, 1 to 1,000; 0 is 100. A page may have more or fewer, or none.
	Limit int
	// States are the states of the records that are wanted; nil for all. A call then reads up to 1,000 records to find them.
	States []string

	// Next is set to the cursor of the next page, and to "" after the last one. After an error, Cursor may be used again.
	Next string
	// Skipped is set to the number of hashes whose keys could be keys of locks, but which are no locks.
	Skipped int
}

type pageKey struct{}

// WithPage returns a context with which a list of a core client is limited to a page. The fields of p are set when the
// list has ended.
func WithPage(ctx context.Context, p *Page) context.Context {
	return context.WithValue(ctx, pageKey{}, p)
}

// PageFrom returns the page that is wanted, nil for all of them.
func PageFrom(ctx context.Context) *Page {
	p, _ := ctx.Value(pageKey{}).(*Page)
	return p
}

// checker is implemented by the options of core.
type checker interface {
	CheckLock(all []Option) error
	CheckOnce(all []Option) error
}

// CheckOptions returns the error for which a lock with these options of core would be refused later, or nil.
func CheckOptions[T Option](opts ...T) error { return check(opts, checker.CheckLock) }

// CheckOnceOptions returns the error for which a Once with these options of core would be refused later, or nil.
func CheckOnceOptions[T Option](opts ...T) error { return check(opts, checker.CheckOnce) }

func check[T Option](opts []T, with func(checker, []Option) error) error {
	var all []Option
	for _, o := range opts {
		if o := Option(o); o != nil {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	c, ok := all[0].(checker)
	if !ok {
		panic("holdfast: seal: an option of another package")
	}
	return with(c, all)
}

// UnitHint returns the end of an error about a duration that is too short to be meant: a number without a unit is one of
// nanoseconds. It returns "" for any other duration.
func UnitHint(d time.Duration) string {
	switch {
	case d <= 0 || d > 100*time.Microsecond: // a longer one was computed
		return ""
	case d < 1000:
		return fmt.Sprintf("; is the unit missing, did you mean %d*time.Second?", int64(d))
	}
	return fmt.Sprintf("; is the unit missing, did you mean %d*time.Millisecond or %[1]d*time.Second?", int64(d))
}
