// Package frameworks runs the suite of the HTTP adapters through frameworks that use the adapter for net/http: chi,
// gorilla/mux, and Echo 4 and 5 by echo.WrapMiddleware. It is a module of its own, so that none of them reaches the go.mod of
// users.
package frameworks
