//go:build !linux

package election_test

import "github.com/holdfast-go/holdfast/tests/testkit/coretest"

var candidates coretest.Work // elections among processes are tested on Linux
