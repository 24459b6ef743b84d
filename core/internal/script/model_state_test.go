package script_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// model is what the scripts must do to one lock, written down without regard to how they do it. Its clock counts
// whole seconds and moves only when it is told to.
type model struct {
	now      int
	tokens   []int64 // of every grant, in order; 0: not seen yet
	known    int     // grants before the last flush: nothing in Redis tells of them any more
	sole     *sole   // nil: no owner holds the lock exclusively
	shares   map[string]*share
	permits  map[string]*permits // by owner
	kept     map[string]int      // by id of a share that has ended, or by a permit of its owner: its minimum time keeps the lock shared until then
	line     []*seat
	gate     int // readers up to that place go before any writer once the minimum time of a write is over
	seats    int // given so far
	released map[string]memory
	told     []news
}

// news is a message to a contender that was let in, or, without a name, to all: the lock is free.
type news struct {
	id    string
	grant int
	slot  string // of a semaphore
}

// sole is the exclusive part of a lock. All entries of its owner last as long as the longest.
type sole struct {
	owner   string // "": none, it is only taken for its minimum time
	mode    string
	ids     map[string]bool
	expires int
	keep    int
	grant   int
}

// share is one shared hold.
type share struct {
	owner   string
	expires int
	keep    int
	grant   int
	covered bool // by permits of its owner
}

// permits are the permits of one owner, until its last share ends.
type permits struct {
	limit int
	slots []int
	keep  int // the minimum time of shares of the owner that have ended
}

// seat is a place in line.
type seat struct {
	*contender
	dies int // without a sign of life
}

// memory is what Redis remembers of a release.
type memory struct {
	held    bool
	expires int
}

// contender is one hold, from its first acquire on.
type contender struct {
	script.Hold
	kind
	mayQueue bool
	by       *contender // the hold by which its owner says to be in; nil if any will do
	place    int        // its number in the model's line, 0 before it stood there
	unheard  bool       // true if no answer to its requests arrives
	tokens   int        // that it wants, to hand the hold over; 0 for one
}

// The modes of holders and waiters, as in [script.State].
const (
	modeMutex = "mutex"
	modeFair  = "fair"
	modeRead  = "read"
	modeWrite = "write"

	modeSemaphore = "semaphore"
)

// kind is a strategy as the model sees it.
type kind struct {
	strategy    string
	mode        string
	readersNext bool
	limit, k    int // of a semaphore
}

func (k kind) shared() bool { return k.mode == modeRead || k.mode == modeSemaphore }
func (k kind) plain() bool  { return k.mode == modeMutex }

// verdict is what an acquire must be answered.
type verdict struct {
	script.Result     // but for token and last, which the model does not know
	grant         int // if granted
	atMost        int // before, counting the dead, which Redis may still have in line
	left          int // of the present holders, in seconds
	slot          int // of a semaphore, if granted
}

func newModel() *model {
	return &model{shares: make(map[string]*share), permits: make(map[string]*permits), kept: make(map[string]int), released: make(map[string]memory)}
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// expire ends what time has ended.
func (m *model) expire() {
	if m.sole != nil && m.sole.expires <= m.now {
		m.sole = nil
	}
	for id, s := range m.shares {
		if s.expires <= m.now {
			delete(m.shares, id)
			m.endPermits(id)
		}
	}
	maps.DeleteFunc(m.kept, func(_ string, until int) bool { return until <= m.now })
	for id, was := range m.released {
		if was.expires <= m.now {
			delete(m.released, id)
		}
	}
}

// until returns when the last hold ends, 0 if there is none.
func (m *model) until() int {
	last := 0
	if m.sole != nil {
		last = m.sole.expires
	}
	for _, s := range m.shares {
		last = max(last, s.expires)
	}
	for _, p := range m.permits {
		if p.keep > m.now {
			last = max(last, p.keep)
		}
	}
	for _, until := range m.kept {
		last = max(last, until)
	}
	return last
}

// endPermits ends the permits of owners without a share, after this share has ended. They stay taken for the minimum time of the owner's
// shares, in place of those that a share with the same id has left: clients use no id twice, but the model does.
func (m *model) endPermits(share string) {
	for owner, p := range m.permits {
		if m.shareOf(owner) != nil {
			continue
		}
		delete(m.permits, owner)
		for i := range p.slots {
			if p.keep > m.now {
				m.kept[fmt.Sprintf("%s+%d", share, i)] = p.keep
			}
		}
	}
}

// inUse returns how many permits are in use. A share without permits counts as one.
func (m *model) inUse() int {
	n := len(m.kept)
	for _, s := range m.shares {
		if !s.covered {
			n++
		}
	}
	for _, p := range m.permits {
		n += len(p.slots)
	}
	return n
}

// fits reports whether a contender for a share does not exceed its limit.
func (m *model) fits(c *contender) bool {
	return c.limit == 0 || m.shareOf(c.Owner) == nil && m.inUse()+c.k <= c.limit
}

// permitsOf returns how many permits an owner has.
func (m *model) permitsOf(owner string) int {
	if p := m.permits[owner]; p != nil {
		return len(p.slots)
	}
	return 0
}

// take gives an owner the smallest free slots.
func (m *model) take(owner string, limit, k int) {
	taken := make(map[int]bool)
	for _, p := range m.permits {
		for _, slot := range p.slots {
			taken[slot] = true
		}
	}
	p := &permits{limit: limit}
	for slot := 0; len(p.slots) < k; slot++ {
		if !taken[slot] {
			p.slots = append(p.slots, slot)
		}
	}
	m.permits[owner] = p
}

// slotOf returns the slot that a contender is told.
func (m *model) slotOf(c *contender) int {
	if p := m.permits[c.Owner]; p != nil && c.limit > 0 {
		return p.slots[0]
	}
	return 0
}

// earliest returns when the first of the shared holds ends.
func (m *model) earliest() int {
	first := m.until()
	for _, s := range m.shares {
		first = min(first, s.expires)
	}
	for _, p := range m.permits {
		if p.keep > m.now {
			first = min(first, p.keep)
		}
	}
	for _, until := range m.kept {
		first = min(first, until)
	}
	return first
}

func (m *model) free() bool { return m.until() == 0 }

func (m *model) isPlain() bool { return m.sole != nil && m.sole.mode == modeMutex }

func (m *model) holds(c *contender) bool {
	if c.shared() {
		return m.shares[c.ID] != nil
	}
	return m.sole != nil && m.sole.ids[c.ID]
}

// isIn reports whether the owner of a contender in line holds the lock by another request.
func (m *model) isIn(c *contender) bool {
	return c.Owner != c.ID && (m.sole != nil && m.sole.owner == c.Owner || m.shareOf(c.Owner) != nil)
}

// proves reports whether the owner's name counts for the contender: the hold that it comes by is in.
func (m *model) proves(c *contender) bool { return c.by == nil || m.holds(c.by) }

// shareOf returns a shared hold of the owner, nil if there is none.
func (m *model) shareOf(owner string) *share {
	for _, s := range m.shares {
		if s.owner == owner {
			return s
		}
	}
	return nil
}

// living returns the contenders in line with heartbeats, for shares or for the exclusive lock.
func (m *model) living(shared bool) (seats []*seat) {
	for _, s := range m.line {
		if s.shared() == shared && s.dies > m.now {
			seats = append(seats, s)
		}
	}
	return seats
}

func (m *model) seatOf(id string) *seat {
	for _, s := range m.line {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (m *model) leave(id string) {
	m.line = slices.DeleteFunc(m.line, func(s *seat) bool { return s.ID == id })
}

// sit gives the contender its place in line, the one that it had if it had one, and a new life there.
func (m *model) sit(c *contender) {
	if c.place == 0 {
		m.seats++
		c.place = m.seats
	}
	m.leave(c.ID)
	m.line = append(m.line, &seat{contender: c, dies: m.now + seconds(script.PlaceTTL)})
	slices.SortFunc(m.line, func(a, b *seat) int { return a.place - b.place })
}

// before returns how many are in line before that id: at least, and if the dead are still stored.
func (m *model) before(id string) (least, most int) {
	for _, s := range m.line {
		switch {
		case s.ID == id:
			return least, most
		case s.dies > m.now:
			least++
		}
		most++
	}
	return -1, -1
}

// handOver lets in whose turn it is, all waiting readers before any writer if gate.
func (m *model) handOver(gate bool) {
	if m.sole != nil {
		return
	}
	var first *seat
	writers, readers, due := m.living(false), m.living(true), m.gate
	if len(writers) > 0 {
		first = writers[0]
	}
	if len(writers)+len(readers) > 0 {
		m.gate = 0
	}
	for _, reader := range readers {
		if !gate && first != nil && reader.place > first.place && reader.place > due || !m.fits(reader.contender) {
			break
		}
		m.admit(reader)
	}
	if first != nil && m.free() {
		m.admit(first)
	}
}

// admit grants the lock to a contender in line, for as long as it may take them to ask for more.
func (m *model) admit(s *seat) {
	grant := m.enter(s.contender, min(s.time(), seconds(script.PlaceTTL)), 0)
	told := news{id: s.ID, grant: grant}
	if s.limit > 0 {
		told.slot = strconv.Itoa(m.slotOf(s.contender))
	}
	m.told = append(m.told, told)
}

// announce tells all that the lock is free, if it is.
func (m *model) announce() {
	if m.free() {
		m.told = append(m.told, news{})
	}
}

// time returns for how many seconds the contender asks.
func (c *contender) time() int { return seconds(max(c.TTL, c.MinHold)) }

// enter makes it a holder, or one for longer, and returns the grant.
func (m *model) enter(c *contender, ttl, keep int) int {
	m.leave(c.ID)
	expires := m.now + ttl
	if keep > 0 {
		keep += m.now
	}
	if c.shared() {
		s := m.shares[c.ID]
		if s == nil {
			if c.limit > 0 && m.shareOf(c.Owner) == nil {
				m.take(c.Owner, c.limit, c.k)
			}
			s = &share{owner: c.Owner, grant: m.grantFor(c.Owner), covered: m.permitsOf(c.Owner) > 0}
			m.shares[c.ID] = s
			delete(m.kept, c.ID) // its minimum time, if it asks for one, begins anew
		}
		s.expires, s.keep = max(s.expires, expires), max(s.keep, keep)
		if m.isPlain() {
			m.sole.mode = modeWrite
		}
		return s.grant
	}
	if m.sole == nil {
		m.sole = &sole{owner: c.Owner, mode: c.mode, ids: make(map[string]bool), grant: m.grantFor(c.Owner)}
	}
	if m.isPlain() {
		m.sole.mode = c.mode
	}
	m.sole.ids[c.ID] = true
	m.sole.expires, m.sole.keep = max(m.sole.expires, expires), max(m.sole.keep, keep)
	return m.sole.grant
}

// grantFor returns the grant that the owner has, or a new one.
func (m *model) grantFor(owner string) int {
	if m.sole != nil && m.sole.owner == owner {
		return m.sole.grant
	}
	if s := m.shareOf(owner); s != nil {
		return s.grant
	}
	m.tokens = append(m.tokens, 0)
	return len(m.tokens) - 1
}

// token takes in the token of a grant, and reports whether it fits in with the others.
func (m *model) token(grant int, token int64) bool {
	if m.tokens[grant] != 0 || token <= 0 {
		return token > 0 && m.tokens[grant] == token
	}
	m.tokens[grant] = token
	last := int64(0)
	for _, t := range m.tokens {
		if t != 0 && t <= last {
			return false
		}
		last = max(last, t)
	}
	return true
}
