package cli

import (
	"io"
	"os"
	"sync"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
)

// output is what a command prints: it is copied to the streams of this process, and its beginning is kept.
type output struct {
	copies         sync.WaitGroup
	writers        []*os.File
	stdout, stderr kept
}

// kept keeps the first bytes of what is written to it.
type kept struct {
	most      int
	text      []byte
	truncated bool
}

// Write never fails.
func (k *kept) Write(text []byte) (int, error) {
	room := min(k.most-len(k.text), len(text))
	k.text = append(k.text, text[:room]...)
	k.truncated = k.truncated || room < len(text)
	return len(text), nil
}

// captureOutput gives the command pipes in place of the streams of this process.
func captureOutput(env *environment, c *supervise.Command, most int) (*output, error) {
	o := &output{stdout: kept{most: most}, stderr: kept{most: most}}
	var err error
	if c.Stdout, err = o.capture(env.stdout, &o.stdout); err == nil {
		c.Stderr, err = o.capture(env.copied, &o.stderr)
	}
	return o, err
}

// capture returns the writing end of a pipe, which is copied to a stream and kept. If the stream cannot be written any
// more, it keeps the error, and the rest is kept all the same.
func (o *output) capture(s *stream, k *kept) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.writers = append(o.writers, write)
	o.copies.Go(func() {
		defer read.Close()
		if _, err := io.Copy(io.MultiWriter(k, s), read); err != nil {
			_, _ = io.Copy(k, read)
		}
	})
	return write, nil
}

// recorded returns what was kept, once no process of the command has the pipes any more. Without capture it is empty.
func (o *output) recorded() recorded {
	for _, w := range o.writers {
		_ = w.Close()
	}
	o.copies.Wait()
	return recorded{Stdout: o.stdout.text, Stderr: o.stderr.text, Truncated: o.stdout.truncated || o.stderr.truncated}
}
