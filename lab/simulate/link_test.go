//go:build holdfast_simulation

package simulate_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// link is the network between one client and one server, and breaks as it is told.
type link struct {
	server *server

	mu    sync.Mutex
	state state
	gone  bool // the client is gone for good, so nothing heals the link
	open  map[*pipe]struct{}
	moved chan struct{} // closed and replaced when the state changes
}

// state is what is wrong with a link.
type state struct {
	delay             time.Duration
	dropOut, dropBack bool // requests, replies
	holdOut           bool // requests are delivered later
	refuse            bool
}

func newLink(server *server) *link {
	return &link{server: server, open: make(map[*pipe]struct{}), moved: make(chan struct{})}
}

// pipe is one connection.
type pipe struct {
	link            *link
	client, service net.Conn

	// Guarded by the link's mutex.
	lossy   bool
	greeted bool
}

// chunk is some bytes and when they may pass.
type chunk struct {
	data []byte
	due  time.Time
}

// Dial is for go-redis.
func (l *link) Dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	refuse := l.state.refuse
	l.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("refused")}
	}
	service, err := l.server.dial()
	if err != nil {
		return nil, err
	}
	outer, inner := net.Pipe()
	p := &pipe{link: l, client: inner, service: service}
	l.mu.Lock()
	l.open[p] = struct{}{}
	l.mu.Unlock()
	go p.pump(inner, service, true)
	go p.pump(service, inner, false)
	return outer, nil
}

// pump passes bytes on in one direction. What is on its way when the sender is gone still arrives.
func (p *pipe) pump(from, to net.Conn, out bool) {
	queue := make(chan chunk, 1<<12)
	go func() {
		for c := range queue {
			p.wait(c, out)
			if out {
				p.link.server.tick()
			}
			_, _ = to.Write(c.data)
		}
		_ = to.Close()
		p.link.mu.Lock()
		defer p.link.mu.Unlock()
		delete(p.link.open, p)
	}()
	defer close(queue)
	for {
		buffer := make([]byte, 4<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if delay, pass := p.take(buffer[:n], out); pass {
			queue <- chunk{buffer[:n], time.Now().Add(delay)}
		}
	}
}

// greetings are commands with which a connection begins. They pass unharmed: go-redis waits for their replies under a
// mutex, and virtual time stands still as long as somebody waits for one.
var greetings = [][]byte{[]byte("hello"), []byte("client")}

// take tells what becomes of bytes that arrive now.
func (p *pipe) take(data []byte, out bool) (delay time.Duration, pass bool) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	s := p.link.state
	if out && !p.greeted {
		text := bytes.ToLower(data)
		p.greeted = !slices.ContainsFunc(greetings, func(g []byte) bool { return bytes.Contains(text, g) })
	}
	if !p.greeted {
		return 0, true
	}
	if out && s.dropOut || !out && s.dropBack {
		p.lossy = true
	}
	return s.delay + time.Duration(rand.Int64N(1+int64(*latency))), !p.lossy
}

// wait returns when a chunk may pass.
func (p *pipe) wait(c chunk, out bool) {
	time.Sleep(time.Until(c.due))
	for out {
		p.link.mu.Lock()
		hold, moved := p.link.state.holdOut && p.greeted, p.link.moved
		p.link.mu.Unlock()
		if !hold {
			return
		}
		<-moved
	}
}

// set breaks the link, or heals it by the zero state: connections that have lost bytes are closed then.
func (l *link) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	l.state = s
	close(l.moved)
	l.moved = make(chan struct{})
	for p := range l.open {
		if p.lossy && s == (state{}) {
			p.close()
		}
	}
}

// sever breaks the link for good. Nothing passes any more.
func (l *link) sever() {
	l.set(state{dropOut: true, dropBack: true})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}

// cut closes all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.open {
		p.close()
	}
}

func (p *pipe) close() {
	_ = p.client.Close()
	_ = p.service.Close()
}
