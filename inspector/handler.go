package inspector

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// readLimit bounds the reads for one page, however slow Redis is.
const readLimit = 3 * time.Second

// Handler is the page. It is safe for concurrent use. [Handler.Close] ends what it has begun.
type Handler struct {
	locks       *core.Client
	config      config
	crossOrigin *http.CrossOriginProtection
	live        *broadcaster
	search      chan struct{} // has room for the one search that may run

	lifetime context.Context // ends with Close
	runs     sync.WaitGroup  // of jobs that RunNow has begun

	mu  sync.Mutex         // guards end, and the begin of runs
	end context.CancelFunc // of the lifetime
}

// New returns a handler for what the client sees in its Redis, under its prefix. It sends nothing. The caller must call Close
// after the server was shut down, and before the client is closed. Mount the handler under a path that ends in a slash, behind a
// login: see the package comment. It returns an error for a client or an option that is nil or out of bounds.
func New(locks *core.Client, opts ...Option) (*Handler, error) {
	config := newConfig(opts)
	if locks == nil {
		config.refuse("the client is nil: pass the client that core.New returns")
	}
	if config.err != nil {
		return nil, config.err
	}
	lifetime, end := context.WithCancel(context.Background())
	return &Handler{
		locks: locks, config: config, crossOrigin: http.NewCrossOriginProtection(),
		live: newBroadcaster(config.viewers), search: make(chan struct{}, 1),
		lifetime: lifetime, end: end,
	}, nil
}

// Close ends the updates of open pages, and the contexts of jobs that were run from a page. It waits for these jobs to return.
// Call it by [http.Server.RegisterOnShutdown] too: Shutdown waits for open pages otherwise. Further requests get 503. Close
// returns nil, and may be called again.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	h.live.close()
	h.runs.Wait()
	return nil
}

// begin starts a run for which Close waits. It returns [core.ErrClosed] after Close.
func (h *Handler) begin(run func()) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lifetime.Err() != nil {
		return core.ErrClosed
	}
	h.runs.Go(run)
	return nil
}

// ServeHTTP answers a request for the page that is named after the last slash of the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if !h.config.served(r) {
		h.refuse(w, r, errHost)
		return
	}
	name, ok := pageOf(r)
	if !ok {
		h.refuse(w, r, errNoPage)
		return
	}
	if asset, ok := assets[name]; ok && reads(r) {
		asset.serve(w, r)
		return
	}
	if h.lifetime.Err() != nil {
		h.refuse(w, r, core.ErrClosed)
		return
	}
	if p, ok := pages[name]; ok {
		h.servePage(w, r, p)
		return
	}
	if a, ok := actions[name]; ok {
		h.serveAction(w, r, a)
		return
	}
	h.refuse(w, r, errNoPage)
}

// reads returns true for the methods that change nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// setHeaders sets what all answers have: browsers run nothing that is not ours, show the page in no frame, and keep no copy.
func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Names are in addresses, so other sites get none. The stricter no-referrer would also hide the origin from the check of
	// forged requests.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept, Cookie")
}
