package testkit

import (
	"net"
	"sync"
	"time"
)

// duplex is a connection whose two directions can be closed apart, which TCP
// and unix sockets both are.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// link is one client's connection together with the relay's to the server. Its
// fields are guarded by the relay's mutex.
type link struct {
	relay  *Relay
	client *net.TCPConn
	server duplex
	pipes  [2]*pipe // by Direction.index
	over   bool     // an end was seen or made: no longer a live connection
	lose   LossMode // what to do with the next reply, 0 for nothing
}

func newLink(r *Relay, client *net.TCPConn, server duplex) *link {
	l := &link{relay: r, client: client, server: server}
	l.pipes[ToServer.index()] = newPipe(l, ToServer, client, server)
	l.pipes[ToClient.index()] = newPipe(l, ToClient, server, client)
	return l
}

// run pumps both directions until both have come to their end.
func (l *link) run() {
	var wg sync.WaitGroup
	for _, p := range l.pipes {
		wg.Go(p.read)
		wg.Go(p.write)
	}
	wg.Wait()
}

// finish ends the connection in good order: each side gets what is queued for
// it and then a FIN. The sockets are not closed before the peers have closed
// theirs, since a close with unread bytes sends a RST, which can overtake them.
func (l *link) finish() {
	l.over = true
	for _, p := range l.pipes {
		p.finish()
	}
}

// deserted reports that both sides have closed: nobody is left to deceive.
func (l *link) deserted() bool {
	return l.pipes[0].srcGone && l.pipes[1].srcGone
}

// sever is finish, but what is queued in one direction is lost.
func (l *link) sever(p *pipe) {
	p.discard()
	l.finish()
}

// reset sends a RST to the client. Requests in the queue still reach the server.
func (l *link) reset() {
	l.over = true
	_ = l.client.SetLinger(0)
	_ = l.client.Close()
	l.pipes[ToClient.index()].discard()
}

// close ends the connection at once.
func (l *link) close() {
	l.over = true
	_ = l.client.Close()
	_ = l.server.Close()
	for _, p := range l.pipes {
		p.cond.Broadcast()
	}
}

// heal ends the faults of this connection. A byte stream with a gap cannot go
// on, so a connection which has lost bytes is closed.
func (l *link) heal() {
	l.lose = 0
	lossy := false
	for _, p := range l.pipes {
		lossy = lossy || p.lossy
		p.mute, p.cut = false, noCut
		for i := range p.queue {
			p.queue[i].due = time.Time{}
		}
		p.cond.Broadcast()
	}
	if lossy {
		l.finish()
	}
}
