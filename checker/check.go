package checker

import "github.com/lockbench/lockbench/history"

// Check judges h.
func Check(h *history.History, o Options) Report { return Report{} }
