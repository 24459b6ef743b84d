package inspector

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// doneTexts are what a page says after an action.
var doneTexts = map[string]string{
	string(ForceUnlock):       "The lock was taken from its holders.",
	string(ForceUnlockHolder): "The lock was taken from this holder.",
	string(Resolve):           "The record is completed.",
	string(Forget):            "The record was deleted.",
	string(Pause):             "The job is paused.",
	string(Resume):            "The job runs again from the next tick on.",
	string(RunNow):            "The job was run: see its runs below.",
	requested: "The run was requested, and has not ended yet. It is not known whether it has begun: see whether it is among the " +
		"runs below, and otherwise the log.",
}

// requested is the key of the text for a run that was not waited for.
const requested = string(RunNow) + "-requested"

// doneCookie carries what was done from the answer of an action to the page behind its redirect. It is shown once. An address could
// not carry it: a link or a bookmark would say that something was done.
const doneCookie = "holdfast-inspector-done"

// setDone lets the page of an object say once what was done.
func (h *Handler) setDone(w http.ResponseWriter, r *http.Request, a Audit, of object) {
	done := string(a.Action)
	if a.Pending {
		done = requested
	}
	const seconds = 30 // if the redirect is never followed
	http.SetCookie(w, h.newCookie(r, doneCookie, doneMark(done, of, a.Name), seconds))
}

// takeDone returns what was just done to the object of a page, and lets the browser forget it.
func (h *Handler) takeDone(w http.ResponseWriter, r *http.Request, of object, name string) string {
	value := h.cookie(r, doneCookie)
	if value == "" {
		return ""
	}
	http.SetCookie(w, h.newCookie(r, doneCookie, "", -1))
	for done, text := range doneTexts {
		if value == doneMark(done, of, name) {
			return text
		}
	}
	return ""
}

// doneMark is the value of the cookie: for another object it means nothing.
func doneMark(done string, of object, name string) string {
	sum := sha256.Sum256([]byte(done + "\n" + string(of) + "\n" + name))
	return hex.EncodeToString(sum[:16])
}
