package inventory

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// cursor is the position of a walk. The zero value is the beginning.
type cursor struct {
	node   string // address of the master that is scanned; "" without a Cluster
	server string // see transport.Scanned; "" if it is not known
	at     string // cursor of its SCAN; "" before the first one

	done, scanning slots // of a Cluster; scanning is empty if the next master has not been chosen
}

// String returns the cursor as text of letters, digits, "-" and "_". It is never empty.
func (c *cursor) String() string {
	text := strings.Join([]string{"1", c.node, c.server, c.at, c.done.String(), c.scanning.String()}, "|")
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseCursor reads what String returns. "" is the beginning.
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return cursor{}, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(decoded), "|")
	if err != nil || len(parts) != 6 || parts[0] != "1" {
		return cursor{}, fmt.Errorf("%w: %q", ErrCursor, text)
	}
	c.node, c.server, c.at = parts[1], parts[2], parts[3]
	var done, scanning bool
	c.done, done = parseSlots(parts[4])
	c.scanning, scanning = parseSlots(parts[5])
	if _, err := strconv.ParseUint(c.at, 10, 64); err != nil && c.at != "" || !done || !scanning {
		return cursor{}, fmt.Errorf("%w: %q", ErrCursor, text)
	}
	return c, nil
}
