// Package measure derives a scenario's result from the files that its run left
// in its folder: latencies and rates from the history, the safety answers from
// the checker, the outcomes of faults from the fault log compared with the
// history, and the takeovers from killed clients from both. A scenario that
// measured properties instead of a load has only these to be compared with the
// recipe's guarantees.
//
// The result can be derived again from the same folder. A figure that was not
// measured is nil with its reason, never 0.
//
// It imports checker, history, scenario, impls (for the properties of a recipe)
// and a histogram library. It starts no process and opens no connection.
package measure
