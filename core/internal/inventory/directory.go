package inventory

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

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
// another form than that of a client. If the client is not known yet, it asks all servers, without waiting for the answers.
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

// lookUp returns what is known of a client. It returns true if the caller should ask for it. Other callers are not told so
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
func (d *Directory) Find(ctx context.Context, owners []string) {
	var unknown []string
	for _, owner := range owners {
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
