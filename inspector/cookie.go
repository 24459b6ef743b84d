package inspector

import "net/http"

// hostPrefix begins the name of a cookie that browsers take only from this host, over HTTPS, and for all of its paths: no
// other host of the domain can set one (RFC 6265bis).
const hostPrefix = "__Host-"

// secure returns true if the browser is known to use HTTPS.
func (h *Handler) secure(r *http.Request) bool { return r.TLS != nil || h.config.secure }

// newCookie returns a cookie of the page. maxAge is in seconds: 0 until the browser ends, and less deletes it. Over HTTP the
// cookie has no path, so it belongs to the folder of the page, under any mount.
func (h *Handler) newCookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if h.secure(r) {
		c.Name, c.Path, c.Secure = hostPrefix+name, "/", true
	}
	return c
}

// cookie returns the value of a cookie of the page, "" if the request has none. Where cookies are secure, one that is not does
// not count.
func (h *Handler) cookie(r *http.Request, name string) string {
	if h.secure(r) {
		name = hostPrefix + name
	}
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}
