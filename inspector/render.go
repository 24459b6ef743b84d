package inspector

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// templates are the pages, each with the frame around it.
var templates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	all := make(map[string]*template.Template)
	for _, name := range []string{"locks", "lock", "records", "record", "cron", "job", "process", "find", "confirm", "problem"} {
		t := template.New("frame.html").Funcs(functions)
		all[name] = template.Must(t.ParseFS(templateFiles, "templates/frame.html", "templates/parts.html", "templates/"+name+".html"))
	}
	return all
}

// functions are the functions of the templates.
var functions = template.FuncMap{
	"visible": visible, "visibleValue": visibleValue, "short": short, "link": link, "plain": plain, "ago": ago, "until": until, "clock": clock, "seconds": seconds,
	"shortOwner": shortOwner, "asset": assetAddress, "bytes": byteCount,
	"tab": newTab, "place": func(i int) int { return i + 1 },
	"took": took, "count": count, "exact": exact, "stamp": stamp,
}

// tab is a link of the frame.
type tab struct {
	Page, Title string
	Current     bool
}

// newTab returns a link that is current on the pages of these templates.
func newTab(page, title, current string, of ...string) tab {
	return tab{page, title, slices.Contains(of, current)}
}

// render returns a part of a page.
func render(name, part string, s shown) string {
	var out bytes.Buffer
	if err := templates[name].ExecuteTemplate(&out, part, s); err != nil {
		panic(err) // a mistake in a template
	}
	return out.String()
}

// writeHTML answers with a page. An error of a write means that the connection has failed.
func writeHTML(w http.ResponseWriter, status int, name string, s shown) {
	s.Now = time.Now()
	text := render(name, "frame.html", s)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// ago returns how long ago a time was, by the clock of this process. That may differ from the clock of Redis.
func ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return rough(max(time.Since(*t), 0))
}

// until returns in how long a time will be, by the clock of this process.
func until(t time.Time) string { return rough(max(time.Until(t), 0)) }

// rough returns a duration as people say it, in its two largest units.
func rough(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// took returns how long something took, in ms.
func took(ms int64) string {
	if ms == 0 {
		return "< 1 ms"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// seconds returns a time that runs out. The script of the page writes the same.
func seconds(c countdown) string {
	left := time.Duration(c.Left) * time.Millisecond
	if left >= time.Minute {
		return rough(left)
	}
	return fmt.Sprintf("%.1f s", left.Seconds())
}

// clock returns a time in full, in UTC.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// exact returns a time as the attribute of a time element has it.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// stamp returns a time for a table, in UTC: without the date if it is today, and without seconds otherwise.
func stamp(t time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) == time.Now().UTC().Format(time.DateOnly) {
		return t.Format("15:04:05 MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

// shortOwner returns an owner for a list: the first digits of the UUID of its client, and the number.
func shortOwner(owner string) string {
	const uuid = 36
	if len(owner) > uuid && owner[uuid] == ':' && strings.Count(owner[:uuid], "-") == 4 {
		return visible(owner[:8] + "…" + owner[uuid:])
	}
	return short(owner)
}

// count returns a number of things, as in "3 locks".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func byteCount(n int) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/1024)
}
