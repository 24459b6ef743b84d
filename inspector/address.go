package inspector

import (
	"net/http"
	"path"
	"strings"

	"github.com/holdfast-go/holdfast/internal/hosts"
)

// served returns true if a request is for one of the names of [WithHosts], with any port.
func (c *config) served(r *http.Request) bool {
	return hosts.Serves(c.hosts, r)
}

// pageOf returns the page, action or file that a path names: what is after its last slash. It returns false for a folder with the
// name of a page or action, as in "lock/", which would be the list of locks otherwise.
//
// The handler cannot see where it is mounted, and a service may choose such a name for that. An [http.ServeMux] tells
// its pattern, whose end the folder is then: all of it, or what StripPrefix has left. Other folders are taken for the
// folder of the page, since another router may lie between.
func pageOf(r *http.Request) (name string, ok bool) {
	folder, name := path.Split(r.URL.Path)
	mount := r.Pattern[max(strings.Index(r.Pattern, "/"), 0):]
	if !strings.HasSuffix(mount, "/") || strings.Contains(mount, "{") || strings.HasSuffix(mount, folder) {
		return name, true // of another router, with wildcards, or right
	}
	last := path.Base(folder)
	_, page := pages[last]
	_, act := actions[last]
	return name, !page && !act && last != "templates" && last != "assets"
}
