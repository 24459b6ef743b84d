package inventory

import (
	"context"
	"embed"
	"fmt"
	"iter"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// maxInstance bounds what a client says of itself, in bytes: each log line about its locks has it.
const maxInstance = 128

// DefaultInstance returns the host and the process ID. It has no data of users.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if !printable(r) {
			return '?'
		}
		return r
	}, host)
	return fmt.Sprintf("%s:%d", host[:min(len(host), 100)], os.Getpid())
}

// maxShortInstance is the longest text of a record, in bytes. Redis keeps a hash with a longer field in a form that takes some
// 400 bytes more.
const maxShortInstance = 64

// ShortInstance returns a text for records: one that is too long without its middle. The end has the process ID.
func ShortInstance(text string) string {
	const front, gap = 24, "..."
	if len(text) <= maxShortInstance {
		return text
	}
	return text[:front] + gap + text[len(text)-(maxShortInstance-front-len(gap)):]
}

// CheckInstance returns why a text cannot be written, or nil.
func CheckInstance(text string) error {
	if len(text) > maxInstance {
		return fmt.Errorf("%d bytes, at most %d are allowed", len(text), maxInstance)
	}
	for _, r := range text {
		if !printable(r) {
			return fmt.Errorf("only printable ASCII is allowed")
		}
	}
	return nil
}

// printable returns true for what changes neither a terminal nor a line of a log.
func printable(r rune) bool { return ' ' <= r && r <= '~' }

const (
	// firstInterval is how soon after its first write a client that has leases or waiters writes its text again. Each further
	// interval is twice as long as the one before, because each text is kept for two intervals beyond the longest lease, until
	// the next write. So a process that is killed early does not leave its text for hours.
	firstInterval = time.Minute
	// longestInterval bounds these intervals.
	longestInterval = time.Hour
	// retryInterval is when a failed write is repeated.
	retryInterval = time.Minute
)

// Announcer writes the text of one client, in the background. Each write waits for its answer for
// transport.FirstAnswerTimeout at most. It is safe for concurrent use.
type Announcer struct {
	key     string
	text    string
	now     keepalive.Clock
	failed  func(error)
	servers []*transport.Executor

	// Read without the mutex. Touch has nothing to do before due, for a TTL up to covered.
	due     atomic.Int64 // a keepalive.Instant
	covered atomic.Int64 // the longest TTL of a lease so far; a time.Duration

	mu       sync.Mutex
	interval time.Duration  // from the next write to the one after it; guarded by mu
	wrote    bool           // true after the first write was sent; guarded by mu
	left     bool           // true after Leave; guarded by mu
	sending  sync.WaitGroup // one for each server of each script; Touch adds to it under mu
}

// NewAnnouncer returns the announcer of the client with that UUID. An empty text is never written. It calls failed for each
// write that a server has not confirmed. Servers must be added before the first Touch.
func NewAnnouncer(client, text string, now keepalive.Clock, failed func(error)) *Announcer {
	a := &Announcer{key: script.ClientKey(client), text: text, now: now, failed: failed, interval: firstInterval}
	if text == "" {
		a.due.Store(math.MaxInt64)
		a.covered.Store(math.MaxInt64)
	}
	return a
}

// AddServer adds a server, to which the text is written. A Redlock has several.
func (a *Announcer) AddServer(exec *transport.Executor) { a.servers = append(a.servers, exec) }

// Touch must be called about every second while the client has leases or waiters, with the longest TTL that is new since the
// last call. It writes the text if that is due, and does not wait for the answer.
func (a *Announcer) Touch(now keepalive.Instant, ttl time.Duration) {
	if int64(now) < a.due.Load() && int64(ttl) <= a.covered.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.text == "" || int64(now) < a.due.Load() && int64(ttl) <= a.covered.Load() {
		return
	}
	longest := max(ttl, time.Duration(a.covered.Load()))
	a.covered.Store(int64(longest))
	a.due.Store(int64(a.now().Add(a.interval)))
	a.wrote = true
	a.send(a.note, announceScript, a.text, script.Milliseconds(longest+2*a.interval))
	a.interval = min(2*a.interval, longestInterval)
}

// Leave says that the client has closed. What is written expires with the longest lease that may be left. It waits for the
// answers, for twice transport.FirstAnswerTimeout at most, because the caller may close the connections next.
//
// It also waits for the writes before, because they may take another connection, and so be executed after what Leave sends.
func (a *Announcer) Leave() {
	a.mu.Lock()
	a.left = true
	wrote := a.wrote
	a.mu.Unlock()
	a.sending.Wait()
	if wrote {
		a.send(func(error) {}, leaveScript, script.Milliseconds(time.Duration(a.covered.Load())))
		a.sending.Wait()
	}
}

// send sends a script to all servers, and calls answered with each outcome. It does not wait.
func (a *Announcer) send(answered func(error), script *transport.Script, args ...any) {
	for _, exec := range a.servers {
		a.sending.Go(func() {
			_, err := exec.Do(transport.Detached(context.Background()), script, []string{a.key}, args...)
			answered(err)
		})
	}
}

// note has a failed write repeated.
func (a *Announcer) note(err error) {
	if err != nil {
		a.due.Store(int64(a.now().Add(retryInterval)))
		a.failed(err)
	}
}

const (
	// maxKnown bounds the clients that a directory knows. Beyond that it forgets any of them.
	maxKnown = 1000
	// maxAsked bounds how many clients one Find asks for.
	maxAsked = 500
	// missingInterval is after what time a client without a text is asked for again at first: it may write the text just now.
	// The interval doubles, because clients of Redisson never have one. The first warning of a long wait, after 10 s, must know
	// the text.
	missingInterval = time.Second
	// longestMissingInterval bounds the interval.
	longestMissingInterval = 16 * time.Second
)

// Directory finds the texts of other clients. It is safe for concurrent use.
type Directory struct {
	now     keepalive.Clock
	servers []*transport.Executor

	mu    sync.Mutex
	known map[string]*entry // by client; guarded by mu, with the fields of the entries
}

// entry is what is known of a client.
type entry struct {
	text  string            // "" if it is not known
	askAt keepalive.Instant // not before, if the text is not known
	asked time.Duration     // the interval before askAt
	own   bool              // true for the client of the directory, which is never asked for
}

// NewDirectory returns a directory that knows only the client with that UUID, and its text.
func NewDirectory(client, text string, now keepalive.Clock) *Directory {
	return &Directory{now: now, known: map[string]*entry{client: {text: text, own: true}}}
}

// AddServer adds a server to ask. All of them must be added before the first question.
func (d *Directory) AddServer(exec *transport.Executor) { d.servers = append(d.servers, exec) }

// Instance returns the text of the client that has an owner. It returns "" if the text is not known, or if the owner has
// another form than a client has. If the client is not known yet, it asks all servers, without waiting for the answers.
func (d *Directory) Instance(owner string) string {
	client, ok := script.ClientOf(owner)
	if !ok {
		return ""
	}
	text, ask := d.lookUp(client)
	if !ask {
		return text
	}
	for _, exec := range d.servers {
		c := transport.NewCommand(findScript, []string{script.ClientKey(client)})
		c.Done = func(c *transport.Command) { d.learn(client, c.Reply) }
		exec.SubmitRenewals([]*transport.Command{c})
	}
	return ""
}

// lookUp returns what is known of a client. It returns true if the caller should ask for it. Other callers get false
// again for some seconds.
func (d *Directory) lookUp(client string) (text string, ask bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.known[client]
	if e == nil {
		e = new(entry)
		d.addLocked(client, e)
	}
	if now := d.now(); e.text == "" && !e.own && now >= e.askAt {
		e.asked = min(max(2*e.asked, missingInterval), longestMissingInterval)
		e.askAt = now.Add(e.asked)
		return "", true
	}
	return e.text, false
}

// addLocked adds a client, and forgets another one if there are too many.
func (d *Directory) addLocked(client string, e *entry) {
	for other, old := range d.known { // in random order
		if len(d.known) < maxKnown {
			break
		}
		if !old.own {
			delete(d.known, other)
		}
	}
	d.known[client] = e
}

// learn keeps a text that a server has replied.
func (d *Directory) learn(client string, reply any) {
	text, _ := reply.(string)
	if text == "" || CheckInstance(text) != nil { // another program has written it
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.known[client]; e != nil {
		e.text = text
	}
}

// Find asks all servers for the clients of owners that are not known, and waits for the answers until ctx ends. Afterwards
// Instance returns what the servers know.
func (d *Directory) Find(ctx context.Context, owners iter.Seq[string]) {
	var unknown []string
	for owner := range owners {
		client, ok := script.ClientOf(owner)
		if !ok || len(unknown) == maxAsked {
			continue
		}
		if _, ask := d.lookUp(client); ask {
			unknown = append(unknown, client)
		}
	}
	transport.DoGrouped(ctx, len(unknown)*len(d.servers), func(ctx context.Context, i int) error {
		client := unknown[i/len(d.servers)]
		reply, err := d.servers[i%len(d.servers)].Do(ctx, findScript, []string{script.ClientKey(client)})
		d.learn(client, reply)
		return err
	})
}

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	announceScript = load("announce")
	leaveScript    = load("leave")
	findScript     = load("find")
)

func load(name string) *transport.Script {
	return transport.NewScript(transport.ReadScripts(luaFiles, name))
}
