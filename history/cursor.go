package history

// cursors merge sequences of calls, each by (Invoke, Client, Seq), into one in
// that order. They are a heap by the next call of each.
type cursors []cursor

type cursor struct {
	stream uint32
	calls  []Call // the first of them is the next one
	more   func() ([]Call, bool)
	given  bool // the first was handed out
}

// add adds a sequence, which comes in pieces. It comes before next.
func (h *cursors) add(stream uint32, more func() ([]Call, bool)) {
	c := cursor{stream: stream, more: more}
	if !c.fill() {
		return
	}
	*h = append(*h, c)
	for i := len(*h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			break
		}
		(*h)[i], (*h)[up] = (*h)[up], (*h)[i]
		i = up
	}
}

// fill makes sure that there is a next call, and reports whether there is one.
func (c *cursor) fill() bool {
	for len(c.calls) == 0 {
		calls, ok := c.more()
		if !ok {
			return false
		}
		c.calls = calls
	}
	return true
}

// next returns the next call and the number of its stream; nil at the end. The
// call stands until next is called again.
func (h *cursors) next() (*Call, uint32) {
	if len(*h) == 0 {
		return nil, 0
	}
	top := &(*h)[0]
	if top.given {
		top.given = false
		top.calls = top.calls[1:]
		if !top.fill() {
			last := len(*h) - 1
			(*h)[0] = (*h)[last]
			*h = (*h)[:last]
		}
		h.sink()
		if len(*h) == 0 {
			return nil, 0
		}
		top = &(*h)[0]
	}
	top.given = true
	return &top.calls[0], top.stream
}

// sink moves the top to where it belongs.
func (h *cursors) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(*h); child++ {
			if h.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}

func (h *cursors) before(i, j int) bool {
	a, b := &(*h)[i].calls[0], &(*h)[j].calls[0]
	if a.Invoke != b.Invoke {
		return a.Invoke < b.Invoke
	}
	return a.Client < b.Client || a.Client == b.Client && a.Seq < b.Seq
}
