// Package hidden is no part of the API.
package hidden
