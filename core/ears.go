package core

// manyEars hear of releases on all servers of a Redlock: the first that tells is enough.
type manyEars struct {
	c    chan struct{}
	each []*listener
	need int // of them to be confirmed, for a message to be expected
}

func (q *quorum) listen(k keys) ear {
	e := &manyEars{c: make(chan struct{}, 1), need: q.majority}
	for _, v := range q.voters {
		e.each = append(e.each, v.server.listen.into(e.c, k.channel))
	}
	return e
}

func (*quorum) overhear(keys) ear { return nil }

func (e *manyEars) news() <-chan struct{} { return e.c }

func (e *manyEars) confirmed() bool {
	confirmed := 0
	for _, l := range e.each {
		if l.confirmed() {
			confirmed++
		}
	}
	return confirmed >= e.need
}

func (*manyEars) asks() bool { return false }

func (e *manyEars) close() {
	for _, l := range e.each {
		l.close()
	}
}
