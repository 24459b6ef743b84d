package asynqlock

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"strconv"
	"strings"
)

const (
	// maxCompactField is the longest field with which Redis keeps a small hash in its compact encoding, by its default
	// hash-max-listpack-value. One longer field makes the hash a table, which takes more than twice the memory.
	maxCompactField = 64
	// minHost is the least that is kept of host and process to keep a note compact: enough to tell pods apart.
	minHost = 12
	// maxNote is the longest note that core takes.
	maxNote = 256
	// maxLabel is the longest label that core takes.
	maxLabel = 256
)

// note tells those who read a record who runs the task: which one, and where.
func note(t taskInfo) string {
	host, _ := os.Hostname()
	return noteOf(identity(t), host+":"+strconv.Itoa(os.Getpid()))
}

// noteOf joins task and place. If that makes the note compact, the place loses its beginning: the end of a host name is
// what tells the pods of a service apart, and the process ID follows it.
func noteOf(task, place string) string {
	if room := maxCompactField - len(task) - 1; room >= minHost && len(place) > room {
		place = place[len(place)-room:]
	}
	text := task + " " + place
	return text[:min(len(text), maxNote)]
}

// label is the type of a task, of which a record has as much as it may.
func label(t taskInfo) string { return strings.ToValidUTF8(t.Type[:min(len(t.Type), maxLabel)], "") }

// identity is the name of a task, or its hash if that is long.
func identity(t taskInfo) string {
	name := t.Queue + "/" + t.ID
	if len(name) <= 128 {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	return "sha256:" + base64.RawURLEncoding.EncodeToString(digest[:])
}

// sameTask reports whether a note is about that task. One that only may be counts too, as it does without ID.
func sameTask(note string, t taskInfo) bool {
	return t.ID == "" || strings.HasPrefix(note, identity(t)+" ")
}
