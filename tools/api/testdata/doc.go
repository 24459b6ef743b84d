// Package shop has a name of each kind.
package shop
