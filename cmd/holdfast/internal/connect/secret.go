package connect

import (
	"errors"
	"net/url"
	"strings"
)

// errEscape is for a password that ends where the parser sees a path, parameters or a fragment.
var errEscape = errors.New("escape / ? and # in the user or the password as %2F, %3F and %23, or set HOLDFAST_REDIS_PASSWORD")

// explanations say what is wrong with a URL, by a part of the parser's error. That error itself quotes the URL,
// and perhaps a part of the password. The first match counts.
var explanations = []struct{ part, text string }{
	{"invalid port", "the port is not a number"},
	{"URL escape", "a % is not followed by two hex digits: write %25 for the character itself"},
	{"userinfo", "the user or the password has a character that must be escaped, such as a blank as %20"},
	{"control character", "it has a control character"},
	{"invalid character", "the host has a character that no host has"},
	{"missing ']'", "the address of the host has no ] at its end"},
	{"invalid URL scheme", "unknown scheme: use one of redis, rediss or unix, or redis or rediss with +sentinel or +cluster"},
	{"database number", "the database is not a number, from 0 on"},
	{"URL path", "behind the host only the number of a database is allowed"},
	{"unexpected option", "a parameter behind the ? is unknown: use the parameters of go-redis, such as dial_timeout=3s"},
	{"socket path", "the path of the socket is missing, as in unix:///run/redis.sock"},
	{"addr param", "one of the hosts is not host:port"},
	{"redis: invalid", "a parameter behind the ? has a wrong value"},
}

// explain returns an error of a parser without what it quotes.
func explain(text string, err error) error {
	if _, behind := split(text); strings.Contains(behind, "@") {
		return errEscape
	}
	var parse *url.Error
	if errors.As(err, &parse) {
		err = parse.Err
	}
	for _, e := range explanations {
		if strings.Contains(err.Error(), e.part) {
			return errors.New(e.text)
		}
	}
	return errors.New("it is no URL")
}

// checkReading refuses a URL that can be parsed, but whose password seems to have been read as another part: an error
// of the connection would name that part.
func checkReading(scheme, text string) error {
	authority, behind := split(text)
	path, _, _ := strings.Cut(behind, "?")
	switch {
	case strings.Contains(behind, "#"):
		return errEscape
	case scheme == "unix" && authority != "" && !strings.HasSuffix(authority, "@"):
		return errors.New("a socket has no host: three slashes are needed, as in unix:///run/redis.sock; " + errEscape.Error())
	case scheme != "unix" && strings.Contains(path, "@"):
		return errEscape
	}
	return nil
}

// split returns the user and the host of a URL, and all that is behind them.
func split(text string) (authority, behind string) {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		rest = text
	}
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		return rest[:at], rest[at:]
	}
	return rest, ""
}

// HasPassword reports whether a URL has a password, or a text that was perhaps meant to be one: a colon before an @ that is
// behind the host as it is written.
func HasPassword(text string) bool {
	authority, behind := split(text)
	if !strings.Contains(authority, "@") {
		authority += behind
	}
	at := strings.LastIndexByte(authority, '@')
	_, password, _ := strings.Cut(authority[:max(at, 0)], ":")
	return password != "" || strings.Contains(behind, "password=")
}
