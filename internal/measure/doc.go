// Package measure derives a scenario's result from the files that its run left
// in its folder: latencies and rates from the history, the safety answers from
// the checker, the faults' outcomes from the fault log held against the
// history, and from both what became of the locks of killed clients. A scenario
// that measured properties instead of a load has only these to be compared with
// the recipe's promise.
//
// Whatever it says can be derived again by calling it again on the folder.
// What was not measured is nil with its reason, never 0.
//
// It imports checker, history, scenario and impls (for what a recipe says of
// itself) and a histogram library; it starts nothing and talks to nobody.
package measure
