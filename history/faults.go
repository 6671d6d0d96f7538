package history

import "fmt"

// faults lists what is wrong with a text that is read into a history, up to
// maxDamage places, and counts the others.
type faults struct {
	h    *History
	name string // of the file
	more int
}

// found adds a place to the damage, by its line and its offset in bytes.
func (f *faults) found(line int, offset int64, client uint32, what string) {
	if len(f.h.Damage) >= maxDamage {
		f.more++
		return
	}
	f.h.Damage = append(f.h.Damage, Damage{File: f.name, Offset: offset, Client: client, What: fmt.Sprintf("line %d: %s", line, what)})
}

// naming adds the client's name to its damage, where the clients have names.
func (h *History) naming() {
	for i := range h.Damage {
		d := &h.Damage[i]
		if name, ok := h.Clients[d.Client]; ok {
			d.Name = name
		}
	}
}

// rest adds how many places are not listed.
func (f *faults) rest() {
	if f.more > 0 {
		f.h.Damage = append(f.h.Damage, Damage{File: f.name, Client: NoClient, What: fmt.Sprintf("and %d more places", f.more)})
	}
}
