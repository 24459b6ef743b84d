package rpc

import (
	"strings"

	"google.golang.org/protobuf/proto"
)

// Fingerprint is for tests.
func Fingerprint(secret []byte, method string, m proto.Message, ignored ...string) []byte {
	tree := fieldTree{}
	for _, path := range ignored {
		tree.add(strings.Split(path, "."))
	}
	return fingerprint(secret, method, m, tree)
}

// Encode and Decode are for tests.
func (a *Answer) Encode(limit int) ([]byte, error) { return a.encode(limit) }

// Decode is for tests.
func Decode(value []byte) (*Answer, error) { return decode(value) }
