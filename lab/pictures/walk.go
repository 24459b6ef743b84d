package main

import "github.com/holdfast-go/holdfast/internal/svg"

// Where the calls of the walk are drawn. Each is indented by how deep it is in the stack.
const (
	walkLeft   = 20
	walkIndent = 14
	walkFile   = 326 // where the files of the calls begin
	walkLine   = 22
)

// call is one function of the walk.
type call struct {
	depth    int
	function string
	file     string
	what     string // that it does, below its name
}

// walk draws the functions through which one Lock and one Unlock of a Mutex go, when the lock is free and nothing else is in flight.
func walk() *svg.Picture {
	lock := []call{
		{0, "Client.Mutex", "core/lock.go", ""},
		{0, "Lock.Lock, singleLock.acquire", "core/lock.go", "hooks, if any are set: core/hooks.go"},
		{1, "newAcquisition", "core/lock.go", "owner: core/lease.go; hold and ID: script/strategy.go"},
		{1, "Acquisition.Run", "acquire/acquisition.go", "limit of waiters: acquire/waiters.go"},
		{2, "waitInList, pollAsHead", "acquire/waiters.go", "only the first of a name asks"},
		{3, "ask, request", "acquire/acquisition.go", "until Redis has answered"},
		{4, "Mutex.Acquire", "script/mutex.go", "keys: script/keys.go; script: lua/lock/acquire_fast.lua"},
		{5, "Executor.Run", "transport/executor.go", "which server: Nodes.of in transport/paths.go"},
		{6, "sendDirect", "transport/paths.go", "if nothing is queued or in flight"},
		{7, "sendSingle, byHash", "transport/executor.go", "EVALSHA, and the reply"},
		{4, "accept", "acquire/acquisition.go", ""},
		{5, "acquisition.Accept", "core/lock.go", "newLease: core/lease.go"},
		{6, "Renewer.Add", "keepalive/renewer.go", "from now on it is renewed"},
	}
	unlock := []call{
		{0, "Lease.Unlock, release", "core/lease.go", ""},
		{1, "Renewer.Remove, End.Set", "keepalive/renewer.go", "not renewed any more, and its context ends"},
		{1, "Environment.Release", "acquire/acquisition.go", "detached from the context of the caller"},
		{2, "Mutex.Release", "script/mutex.go", "what Redis remembers of it: script/strategy.go"},
		{3, "Executor.Run, sendDirect", "transport/executor.go", "as above, with lua/lock/release_fast.lua"},
	}
	p := svg.New(walkHeight(lock, unlock), "The walk of a lock",
		"One Lock of a free Mutex goes from core to package acquire, which asks as the first of the local list, to script, which has the "+
			"command, and to transport, which sends it on the goroutine of the caller. The grant makes a lease in core, which keepalive "+
			"renews. Unlock takes the lease out of keepalive, and goes by acquire, script and transport to Redis.")
	y := walkPart(p, 0, "Lock of a free Mutex", lock)
	walkPart(p, y, "Unlock", unlock)
	return p
}

// walkHeight returns the height of a picture of these parts.
func walkHeight(parts ...[]call) float64 {
	height := 14.0
	for _, part := range parts {
		height += 44
		for _, c := range part {
			height += walkLine
			if c.what != "" {
				height += walkLine - 6
			}
		}
	}
	return height
}

// walkPart draws one part below y, and returns where it ends.
func walkPart(p *svg.Picture, y float64, heading string, calls []call) float64 {
	p.Heading(walkLeft, y+28, heading)
	y += 52
	for _, c := range calls {
		x := walkLeft + walkIndent*float64(c.depth)
		p.Text(x, y, svg.Start, c.function)
		p.Note(walkFile, y, svg.Start, c.file)
		if c.what != "" {
			y += walkLine - 6
			p.Note(x+walkIndent, y, svg.Start, c.what)
		}
		y += walkLine
	}
	return y - 8
}
