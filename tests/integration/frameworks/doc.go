// Package frameworks runs the suite of the HTTP adapters through frameworks that use the adapter for net/http: chi,
// gorilla/mux, and Echo 4 and 5 by echo.WrapMiddleware.
package frameworks
