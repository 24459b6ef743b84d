package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// duration is a flag: "90", "0.5" and "1.5s" are seconds; other units are written as in Go.
type duration time.Duration

// tooLong matches what is a duration of Go, if that does not exceed 292 years.
var tooLong = regexp.MustCompile(`^(\d+\.?\d*(ns|us|µs|ms|s|m|h))+$`)

// UnmarshalText reads the value of a flag.
func (d *duration) UnmarshalText(text []byte) error {
	seconds, err := strconv.ParseFloat(string(text), 64)
	parsed := time.Duration(seconds * float64(time.Second))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		parsed, err = time.ParseDuration(string(text))
	}
	switch {
	case err != nil && tooLong.Match(text), errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("the duration %q is too long", text)
	case err != nil, math.IsNaN(seconds):
		return fmt.Errorf("%q is no duration: use seconds, or 500ms, 5m, 24h", text)
	case parsed < 0 || seconds > 1e9:
		return fmt.Errorf("the duration %q is negative or too long", text)
	}
	*d = duration(parsed)
	return nil
}

// Decode reads the value of a flag, and says what is missing if there is none.
func (d *duration) Decode(ctx *kong.DecodeContext) error {
	if !ctx.Scan.Peek().IsValue() {
		return errors.New("a duration is needed: seconds, or 500ms, 5m, 24h")
	}
	return d.UnmarshalText([]byte(ctx.Scan.Pop().String()))
}

func (d duration) value() time.Duration { return time.Duration(d) }

// MarshalText returns the value as help shows it.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
