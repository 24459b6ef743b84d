package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// parse returns the target of a URL.
func parse(text string) (target, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return target{}, errors.New("it has no scheme, such as redis://")
	}
	base, suffix, _ := strings.Cut(scheme, "+")
	if suffix == "" {
		return parseServer(text)
	}
	if base != "redis" && base != "rediss" || suffix != "sentinel" && suffix != "cluster" {
		return target{}, fmt.Errorf("unknown scheme %q", scheme)
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
		return nil, parseError(err)
	}
	query := u.Query()
	for _, other := range all[1:] {
		query.Add("addr", other)
	}
	u.RawQuery = query.Encode()
	return u, nil
}

func parseServer(text string) (target, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return target{}, parseError(err)
	}
	open := func() redis.UniversalClient { return redis.NewClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}

// parseSentinel takes a URL whose path is the name of the master, and perhaps a database. For go-redis the user of the
// URL is that of the sentinels; here it is that of the master.
func parseSentinel(u *url.URL) (target, error) {
	master, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if master == "" {
		return target{}, errors.New("the path of a Sentinel URL is the name of the master, as in redis+sentinel://host:26379/main")
	}
	query := u.Query()
	query.Set("master_name", master)
	user, password := query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.Path, u.RawQuery = "/"+db, query.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return target{}, parseError(err)
	}
	o.Username, o.Password, o.SentinelUsername, o.SentinelPassword = o.SentinelUsername, o.SentinelPassword, user, password
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server instead of that of the first sentinel
	}
	open := func() redis.UniversalClient { return redis.NewFailoverClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}

func parseCluster(u *url.URL) (target, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return target{}, parseError(err)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server instead of that of the first
	}
	open := func() redis.UniversalClient { return redis.NewClusterClient(o) }
	return target{open, &o.OnConnect, &o.Username, &o.Password, o.TLSConfig}, nil
}

// parseError takes the URL out of an error, because it may have a password.
func parseError(err error) error {
	var parse *url.Error
	if errors.As(err, &parse) {
		return parse.Err
	}
	return err
}

// HasPassword reports whether a URL has a password.
func HasPassword(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	authority := rest
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		authority = rest[:at]
	}
	user, _, found := strings.Cut(authority, "@")
	_, password, _ := strings.Cut(user, ":")
	return found && password != "" || strings.Contains(rest, "password=")
}
