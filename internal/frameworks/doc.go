// Package frameworks runs the suite of the HTTP adapters through frameworks that use the adapter for net/http: chi, and
// Echo by echo.WrapMiddleware. It is a module of its own, so that neither reaches the go.mod of users.
package frameworks
