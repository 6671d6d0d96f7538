package checker

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/history"
)

// show prints a history for a failed test.
func show(h *history.History) string {
	var b strings.Builder
	for _, c := range h.Calls {
		fmt.Fprintf(&b, "client %d #%d key %d %s %s [%d,%d] attempt %s token %d\n", c.Client, c.Seq, c.Key, c.Kind, c.Outcome, c.Invoke, c.Return, c.Attempt.String()[8:16], c.Fence)
	}
	return b.String()
}
