// Package httpkit is what the tests of HTTP guards have in common: a server on a socket, requests to it, answers as a client
// reads them, and a handler whose runs the test ends. It is for the tests of this repository and no API.
package httpkit
