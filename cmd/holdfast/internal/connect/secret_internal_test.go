package connect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// rareLetters are in no text of an error, which may have the ports 6379 and 26379.
const rareLetters = "qxzjQXZJ48"

// randomSecret returns a password of such letters, and of characters that mean something in a URL.
func randomSecret() string {
	const special = `/?#@:%[]&=+, ;"\` + "\n\xff"
	var secret strings.Builder
	for range 3 + rand.N(12) {
		from := rareLetters
		if rand.N(4) == 0 {
			from = special
		}
		secret.WriteByte(from[rand.N(len(from))])
	}
	return secret.String()
}

// quoted returns three characters in a row of a secret that a text has, at least two of them letters, or "".
func quoted(text, secret string) string {
	for i := 3; i <= len(secret); i++ {
		run := secret[i-3 : i]
		letters := 0
		for _, b := range []byte(run) {
			letters += strings.Count(rareLetters, string(rune(b)))
		}
		if letters >= 2 && strings.Contains(text, run) {
			return run
		}
	}
	return ""
}

// TestErrorsHideSecrets: whatever characters a password has, no error has a part of it, for each kind of URL.
func TestErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	templates := []string{
		"%s://:SECRET@host", "%s://ada:SECRET@host:6379/0", "%s://SECRET@host", "%s://ada:99SECRET@host", "%s://ada:99/SECRET@host",
		"%s://ada:99?SECRET@host", "%s://ada:99#SECRET@host", "%s://ada:SECRET", "%s://ada:p@host/main?sentinel_password=SECRET",
		"%s://ada:p@host/main?sentinel_password=a&SECRET", "%s://ada:SECRET@/run/redis.sock", "%s://host:1,ada:SECRET@host:2/main",
		"ada:SECRET@host%s", "ada:SECRET://%s", "red+SECRET://%s",
	}
	schemes := []string{"redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel", "http", ""}
	failed := 0
	for range 20_000 {
		secret := randomSecret()
		url := strings.ReplaceAll(fmt.Sprintf(templates[rand.N(len(templates))], schemes[rand.N(len(schemes))]), "SECRET", secret)
		_, err := parse(url)
		if err == nil {
			continue
		}
		failed++
		if part := quoted(err.Error(), secret); part != "" {
			t.Fatalf("the error of %q has %q: %v", url, part, err)
		}
	}
	if failed < 5_000 {
		t.Errorf("only %d URLs were wrong", failed)
	}
}
