package inventory

import (
	"fmt"
	"os"
	"strings"
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
