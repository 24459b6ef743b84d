package httplock

import (
	"maps"
	"net/http"
)

// Refuse answers a refused request with the problem of the conflict. It is the default [RefusalHandler].
func Refuse(w http.ResponseWriter, _ *http.Request, conflict *Conflict) {
	problem := conflict.Problem().For(w.Header())
	maps.Copy(w.Header(), problem.Header())
	w.WriteHeader(problem.Status)
	_, _ = w.Write(problem.Body()) // nobody is left to tell of a client that does not read its answer
}
