//go:build !linux

package core_test

var candidates work // elections among processes are tested on Linux
