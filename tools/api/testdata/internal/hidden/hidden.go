// Package hidden is no part of the API.
package hidden

// Exported is out of reach.
const Exported = 1
