package testkit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// roundTrip sends one command on a connection of its own and returns the reply:
// the text of a bulk string, or the whole line of any other. It is used instead
// of go-redis, whose handshake would show in the statistics under test.
func (s *Server) roundTrip(command string) (string, error) { return s.ask(command, startTimeout) }

// ask is roundTrip with a server that may not answer.
func (s *Server) ask(command string, within time.Duration) (string, error) {
	conn, err := net.DialTimeout(s.network, s.addr, within)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !strings.HasPrefix(line, "$") {
		return line, nil
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil || size < 0 {
		return "", fmt.Errorf("reply %q to %s", line, command)
	}
	text := make([]byte, size)
	_, err = io.ReadFull(r, text)
	return string(text), err
}
