package testkit

import (
	"sync"
	"time"
)

// noCut is the value of pipe.cut while no cut is armed.
const noCut = -1

// maxChunk is large enough for a request with its script to arrive in one chunk.
const maxChunk = 64 << 10

// chunk is a piece of a byte stream, or its end, which keeps its place behind
// the bytes sent before it.
type chunk struct {
	data []byte
	fin  bool
	due  time.Time // when it may pass, zero for at once
}

// pipe is one direction of a link. A goroutine which reads fills the queue, one
// which writes empties it as far as the faults allow. All fields below cond are
// guarded by the relay's mutex, on which cond is built; every change which could
// let the writer continue is followed by a broadcast.
type pipe struct {
	link     *link
	dir      Direction
	src, dst duplex

	cond  *sync.Cond
	queue []chunk
	ended bool // a fin was queued: whatever comes later is dropped
	mute  bool // this connection is silently dead in this direction
	lossy bool // bytes, or the end, were swallowed
	cut   int  // bytes which may pass until the link is severed, or noCut

	srcGone bool // the source has closed its connection
}

func newPipe(l *link, dir Direction, src, dst duplex) *pipe {
	return &pipe{
		link: l, dir: dir, src: src, dst: dst,
		cond: sync.NewCond(&l.relay.mu),
		cut:  noCut,
	}
}

// read takes bytes from the source until it ends. It continues when the pipe has
// ended, so that the source never sees a RST on account of unread bytes.
func (p *pipe) read() {
	buf := make([]byte, maxChunk)
	for {
		n, err := p.src.Read(buf)
		if n > 0 {
			p.push(append([]byte(nil), buf[:n]...))
		}
		if err != nil {
			p.pushEnd()
			return
		}
	}
}

func (p *pipe) push(data []byte) {
	r := p.link.relay
	if p.dir == ToServer {
		p.observe(data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case p.ended:
		return
	case p.dir == ToServer && p.link.lose == 0:
		p.link.lose = r.faults.matchLoss(data)
	case p.dir == ToClient && p.link.lose != 0:
		p.loseReply()
	}
	if p.ended {
		return
	}
	if p.dropping() {
		p.lossy = true
		return
	}
	p.queue = append(p.queue, chunk{data: data, due: r.faults.due(p.dir)})
	p.cond.Broadcast()
}

// loseReply does away with the first bytes of a reply that should be lost.
func (p *pipe) loseReply() {
	p.link.relay.lost++
	how := p.link.lose
	p.link.lose = 0
	if how == Closed {
		p.link.finish()
		return
	}
	p.mute = true
}

func (p *pipe) pushEnd() {
	r := p.link.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	p.link.over = true
	p.srcGone = true
	if !p.dropping() {
		p.end(r.faults.due(p.dir))
		return
	}
	p.lossy = true // the end is as silent as the bytes
	if p.link.deserted() {
		p.link.finish()
	}
}

// finish queues the end of the stream, to pass as soon as the bytes before it.
func (p *pipe) finish() {
	p.end(time.Time{})
}

func (p *pipe) end(due time.Time) {
	if p.ended {
		return
	}
	p.ended = true
	p.queue = append(p.queue, chunk{fin: true, due: due})
	p.cond.Broadcast()
}

// discard ends the stream and loses what is queued.
func (p *pipe) discard() {
	p.queue, p.ended = nil, false
	p.finish()
}

func (p *pipe) dropping() bool {
	return p.mute || p.link.relay.faults.ways[p.dir.index()].drop
}

// write passes bytes on until the stream ends. Errors are ignored: if the
// destination is gone, what is sent to it is lost, as in any network.
func (p *pipe) write() {
	for {
		data, ok := p.next()
		if !ok {
			break
		}
		_, _ = p.dst.Write(data)
	}
	_ = p.dst.CloseWrite()
}

// next waits for bytes that may pass. It returns false at the stream's end.
func (p *pipe) next() ([]byte, bool) {
	r := p.link.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		wait := time.Duration(0)
		switch {
		case r.closed:
			return nil, false
		case len(p.queue) == 0 || r.faults.ways[p.dir.index()].hold:
		default:
			if wait = time.Until(p.queue[0].due); wait <= 0 {
				return p.pop()
			}
		}
		p.sleep(wait)
	}
}

// pop takes the first chunk, or as much of it as slices and a cut allow.
func (p *pipe) pop() ([]byte, bool) {
	c := p.queue[0]
	p.queue = p.queue[1:]
	if c.fin {
		return nil, false
	}
	if n := p.link.relay.faults.ways[p.dir.index()].slice; n > 0 && len(c.data) > n {
		p.queue = append([]chunk{{data: c.data[n:], due: c.due}}, p.queue...)
		c.data = c.data[:n]
	}
	if p.cut == noCut {
		return c.data, true
	}
	if len(c.data) < p.cut {
		p.cut -= len(c.data)
		return c.data, true
	}
	data := c.data[:p.cut]
	p.cut = noCut
	p.link.sever(p)
	return data, true
}

// sleep waits for a broadcast, and at most for d if that is not 0.
func (p *pipe) sleep(d time.Duration) {
	if d > 0 {
		// Under the mutex, so that it cannot come before Wait has begun.
		timer := time.AfterFunc(d, func() {
			p.link.relay.mu.Lock()
			defer p.link.relay.mu.Unlock()
			p.cond.Broadcast()
		})
		defer timer.Stop()
	}
	p.cond.Wait()
}
