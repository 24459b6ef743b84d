// Package router runs Watermill's own tests of its router with the guard of msglock/watermill in front of every handler.
package router
