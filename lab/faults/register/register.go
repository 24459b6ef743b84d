package register

import (
	"encoding/json"
	"errors"
	"net"
	"sync"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// Request is one write.
type Request struct {
	By       string
	Call     int64 // of the lease
	Name     string
	Token    int64
	Unfenced bool
}

// Reply tells whether the token was too small. An unfenced write is carried out all the same.
type Reply struct {
	Refused bool
}

// Server keeps the greatest token for each name.
type Server struct {
	listener net.Listener
	log      *history.Log
	all      sync.WaitGroup

	mu      sync.Mutex // guards all below, and orders the writes
	highest map[string]int64
	conns   map[net.Conn]struct{}
}

// Serve answers on a unix socket at path until Close is called.
func Serve(path string, log *history.Log) (*Server, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, log: log, highest: make(map[string]int64), conns: make(map[net.Conn]struct{})}
	s.all.Go(s.accept)
	return s, nil
}

// Close ends all connections.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		s.all.Go(func() { s.serve(conn) })
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r Request
		if in.Decode(&r) != nil || out.Encode(s.write(r)) != nil {
			return
		}
	}
}

// write decides and records in one step, so the history has the writes in their order.
func (s *Server) write(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := r.Name
	if r.Unfenced {
		resource += " unfenced"
	}
	refused := r.Token < s.highest[resource]
	s.highest[resource] = max(s.highest[resource], r.Token)
	s.log.Say(history.Event{
		Kind: history.Write, By: r.By, Call: r.Call, Names: []string{r.Name}, Token: r.Token,
		Refused: refused, Unfenced: r.Unfenced,
	})
	return Reply{Refused: refused}
}

// Client writes to a register.
type Client struct {
	mu   sync.Mutex // one request at a time
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

// Dial connects to the register at path.
func Dial(path string) (*Client, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

// Write asks for one write.
func (c *Client) Write(r Request) (reply Reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = errors.Join(c.out.Encode(r), c.in.Decode(&reply))
	return reply, err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }
