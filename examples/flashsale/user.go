package main

import (
	"context"
	"net/http"
)

// userKey is where authenticate leaves the user in the context of a request.
type userKey struct{}

// authenticate stands for real authentication, which belongs around the guards: as it stands, everybody can order, and
// use up the one order, in anybody's name.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("X-User")
		if len(user) > 64 { // no account has such a name, so nobody is logged in
			user = ""
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// userOf returns who sends a request.
func userOf(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}
