// Package frameworks runs the suite of the HTTP adapters through frameworks that use the adapter for net/http: chi and
// gorilla/mux.
package frameworks
