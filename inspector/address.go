package inspector

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// served returns true if a request is for one of the names of [WithHosts], with any port.
func (c *config) served(r *http.Request) bool {
	if len(c.hosts) == 0 {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.Trim(name, "[]") // of an IPv6 address
	return slices.ContainsFunc(c.hosts, func(host string) bool { return strings.EqualFold(host, name) })
}

// pageOf returns the page, action or file that a path names: what is after its last slash. It returns false for a folder below
// that of the page. The handler does not know its folder. An [http.ServeMux] tells the pattern, whose end a path of the folder is:
// all of it, or what StripPrefix has left. Otherwise any folder is taken for that of the page.
func pageOf(r *http.Request) (name string, ok bool) {
	path := r.URL.Path
	folder, name := path[:strings.LastIndex(path, "/")+1], path[strings.LastIndex(path, "/")+1:]
	mount := r.Pattern[max(strings.Index(r.Pattern, "/"), 0):]
	if !strings.HasSuffix(mount, "/") || strings.Contains(mount, "{") {
		return name, true // of another router, or with wildcards
	}
	return name, strings.HasSuffix(mount, folder)
}
