package httpguard

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
)

// Codec is that of package httplock, which documents it.
type Codec interface {
	Seal(plain []byte, name string) (sealed []byte, err error)
	Open(sealed []byte, name string) (plain []byte, err error)
}

// NewAESGCM returns a Codec that encrypts and authenticates with AES-GCM (NIST SP 800-38D), with a random nonce for
// each record. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones behind it,
// on all instances, for as long as records are kept. The first key encrypts, and all keys decrypt.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) {
	var c aesGCM
	for i, k := range append([][]byte{key}, older...) {
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("holdfast: key %d of the codec: %w", i+1, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("holdfast: key %d of the codec: %w", i+1, err)
		}
		c = append(c, aead)
	}
	return c, nil
}

type aesGCM []cipher.AEAD

func (c aesGCM) Seal(plain []byte, name string) ([]byte, error) {
	return c[0].Seal(nil, nil, plain, []byte(name)), nil
}

func (c aesGCM) Open(sealed []byte, name string) ([]byte, error) {
	for _, aead := range c {
		if plain, err := aead.Open(nil, nil, sealed, []byte(name)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("holdfast: recorded answer: no key of the codec decrypts it")
}

// plain is the Codec of those who have none.
type plain struct{}

func (plain) Seal(text []byte, _ string) ([]byte, error) { return text, nil }
func (plain) Open(text []byte, _ string) ([]byte, error) { return text, nil }
