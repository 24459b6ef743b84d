package example

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
)

// Payments sends payments to a handler, as the clients of two users do, and prints the answers. Each payment has an
// Idempotency-Key of its own, which its client chooses at random and sends again when it tries again.
func Payments(out io.Writer, handler http.Handler) error {
	server := httptest.NewServer(handler)
	defer server.Close()
	adas, bobs := rand.Text(), rand.Text()
	for _, request := range []struct{ what, user, key string }{
		{"ada pays", "ada", adas},
		{"ada's client has lost the answer and tries again", "ada", adas},
		{"bob pays", "bob", bobs},
		{"ada pays without a key", "ada", ""},
	} {
		answer, err := pay(server, request.user, request.key)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", request.what, answer)
	}
	return nil
}

// pay sends one request and prints the response.
func pay(server *httptest.Server, user, key string) (string, error) {
	r, err := http.NewRequest(http.MethodPost, server.URL+"/payments", http.NoBody)
	if err != nil {
		return "", err
	}
	r.SetBasicAuth(user, "secret")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return answer.Status, err
	}
	if answer.Header.Get("Idempotency-Replayed") == "true" {
		return fmt.Sprintf("%s, %s, the recorded answer", answer.Status, body), nil
	}
	return fmt.Sprintf("%s, %s", answer.Status, body), nil
}

// PaymentAnswers are the lines that Payments prints if the guard does what it should.
var PaymentAnswers = []string{
	"ada pays: 201 Created, payment 1",
	"ada's client has lost the answer and tries again: 201 Created, payment 1, the recorded answer",
	"bob pays: 201 Created, payment 2",
	"ada pays without a key: 400 Bad Request",
}
