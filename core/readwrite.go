package core

// Read returns the read side of a read-write lock: any number of owners hold it at once, but none while the lock is
// held for writing. It does no I/O; what is wrong with name or options is reported by Lock and TryLock.
//
// Turns are those of [sync.RWMutex]: a writer that waits holds back new readers, and the readers who waited while
// it wrote go before the next writer. So neither side starves the other. Writers are served in the order of arrival,
// across all processes. (After a writer that crashed, or was forced out, the order of arrival decides.)
//
// Both sides are reentrant. An owner that writes may also read, and may then unlock the write side first, which lets
// the waiting readers in at once. An owner that reads cannot write: that is refused with [ErrUpgrade], because it
// would wait for itself. Reading again never waits.
//
// Every hold has its own TTL: a reader that crashed blocks writers until its own is over, whatever others do.
//
// It excludes, and is excluded by, every other strategy on the same name.
func (c *Client) Read(name string, opts ...LockOption) Locker {
	return c.locker(name, c.reading(), opts)
}

// Write returns the write side of a read-write lock: one owner holds it, and nobody holds the read side meanwhile.
// See [Client.Read].
func (c *Client) Write(name string, opts ...LockOption) Locker {
	return c.locker(name, inLine{oneRedis: oneRedis{c.server}, as: "writing", readersNext: true}, opts)
}

// FairRead returns the read side of a read-write lock whose turns are strictly those of arrival, with neighbouring
// readers together. Otherwise it is [Client.Read].
func (c *Client) FairRead(name string, opts ...LockOption) Locker {
	return c.locker(name, c.reading(), opts)
}

// FairWrite returns the write side of a read-write lock whose turns are strictly those of arrival. See
// [Client.FairRead].
func (c *Client) FairWrite(name string, opts ...LockOption) Locker {
	return c.locker(name, inLine{oneRedis: oneRedis{c.server}, as: "writing"}, opts)
}

// reading is the read side of both kinds: who comes after a writer is decided when that one ends.
func (c *Client) reading() inLine {
	return inLine{oneRedis: oneRedis{c.server}, as: "reading"}
}
