package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// target are the options of one kind of client, as far as [Settings] changes them.
type target struct {
	open               func() redis.UniversalClient
	onConnect          *func(ctx context.Context, conn *redis.Conn) error
	username, password *string
	tls                *tls.Config // nil without TLS
}

// parse returns the target of a URL. No error quotes the URL, because that may have a password.
func parse(text string) (target, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return target{}, errors.New("it has no scheme, such as redis://")
	}
	if err := checkReading(scheme, text); err != nil {
		return target{}, err
	}
	t, err := parseScheme(text, scheme, rest)
	if err != nil && !errors.Is(err, errNoMaster) {
		return target{}, explain(text, err)
	}
	return t, err
}

// parseScheme returns the target of a URL that has been cut behind its scheme.
func parseScheme(text, scheme, rest string) (target, error) {
	base, suffix, _ := strings.Cut(scheme, "+")
	if suffix == "" {
		return parseServer(text)
	}
	if base != "redis" && base != "rediss" || suffix != "sentinel" && suffix != "cluster" {
		return target{}, errors.New("invalid URL scheme")
	}
	u, err := withAddresses(base, rest)
	switch {
	case err != nil:
		return target{}, err
	case suffix == "sentinel":
		return parseSentinel(u)
	}
	return parseCluster(u)
}

// withAddresses returns a URL of the first host. The other ones become parameters, as go-redis takes them.
func withAddresses(base, rest string) (*url.URL, error) {
	authority, behind := rest, ""
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		authority, behind = rest[:at], rest[at:]
	}
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	all := strings.Split(hosts, ",")
	u, err := url.Parse(base + "://" + user + all[0] + behind)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	for _, other := range all[1:] {
		query.Add("addr", other)
	}
	u.RawQuery = query.Encode()
	return u, nil
}

// errDatabase is of a number that go-redis would take for database 0.
var errDatabase = errors.New("invalid database number")

func parseServer(text string) (target, error) {
	o, err := redis.ParseURL(text)
	if err == nil && o.DB < 0 {
		err = errDatabase
	}
	if err != nil {
		return target{}, err
	}
	open := func() redis.UniversalClient { return redis.NewClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}

var errNoMaster = errors.New("the path of a Sentinel URL is the name of the master, as in redis+sentinel://host:26379/main")

// parseSentinel takes a URL whose path is the name of the master, and perhaps a database. For go-redis the user of the
// URL belongs to the sentinels; here it belongs to the master.
func parseSentinel(u *url.URL) (target, error) {
	master, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if master == "" {
		return target{}, errNoMaster
	}
	query := u.Query()
	query.Set("master_name", master)
	user, password := query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.Path, u.RawQuery = "/"+db, query.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err == nil && o.DB < 0 {
		err = errDatabase
	}
	if err != nil {
		return target{}, err
	}
	o.Username, o.Password, o.SentinelUsername, o.SentinelPassword = o.SentinelUsername, o.SentinelPassword, user, password
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // the name of each server instead of the first sentinel's
	}
	open := func() redis.UniversalClient { return redis.NewFailoverClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}

func parseCluster(u *url.URL) (target, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return target{}, err
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // the name of each server instead of the first one's
	}
	open := func() redis.UniversalClient { return redis.NewClusterClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}
