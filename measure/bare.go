package measure

import (
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
)

// Bare judges a history of which nothing else is known. The lock is taken for
// a lease that may end whenever it is not renewed, the model that accuses
// least; its fencing tokens are judged if every grant carries one. Liveness is
// unknown, since no bound is. Stamps in witnesses count from the first call.
func Bare(h *history.History) scenario.Safety {
	in := &input{history: h, info: impls.Info{Bound: impls.BoundSession}}
	grants, tokens := 0, 0
	for i := range h.Calls {
		c := &h.Calls[i]
		if i == 0 || c.Invoke < in.samples.Start {
			in.samples.Start = c.Invoke
		}
		if asks(c) && c.Outcome == history.Held {
			grants++
			if c.Fence != 0 {
				tokens++
			}
		}
	}
	in.info.Fencing = grants > 0 && tokens == grants
	d := &derivation{input: in}
	d.result.Unmeasured = map[string]string{}
	d.judge()
	return d.result.Safety
}
