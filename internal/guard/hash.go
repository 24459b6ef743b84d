package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Digest returns the SHA-256 of a list of texts, or their HMAC-SHA-256 if there is a secret, as that of [WithKeySecret]. No two
// lists have the same digest, as far as is known: the length stands in front of each text, so that no text can pass for the end of
// one and the beginning of another. It is for fingerprints.
func Digest(secret []byte, texts ...string) [sha256.Size]byte {
	size := 0
	for _, text := range texts {
		size += 8 + len(text)
	}
	joined := slices.Grow(make([]byte, 0, 512), size) // most keys stay on the stack
	for _, text := range texts {
		joined = binary.BigEndian.AppendUint64(joined, uint64(len(text)))
		joined = append(joined, text...)
	}
	if len(secret) == 0 {
		return sha256.Sum256(joined)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(bytes.Clone(joined)) // the interface would move it to the heap without a secret, too
	return [sha256.Size]byte(mac.Sum(nil))
}

// Hash returns the [Digest] as 43 characters of base64url, for the KeyHash of [core.Work] and the names of locks and records.
// Operators find names by it.
func Hash(secret []byte, texts ...string) string {
	sum := Digest(secret, texts...)
	var hash [43]byte
	base64.RawURLEncoding.Encode(hash[:], sum[:])
	return string(hash[:])
}
