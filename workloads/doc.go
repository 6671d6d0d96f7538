// Package workloads is what clients do: when they want a lock, which key, how
// long they hold it, and what they do under it.
//
// Clients live in worker processes. The controller starts them with StartPool
// and talks to them over their standard input and output; a worker runs Main.
// Beside that pipe they share two things: the Board, memory in which each
// client shows what it is doing, and at whose gate one can be made to stand at a
// named step of its recipe, or at a place of its load; and the Register, the
// resource that the lock guards, which the controller serves over a unix socket.
//
// Each client has a dialer and a clock of its own, which faults reach by orders
// to its worker: they are carried out at once, beside the load.
//
// Every call is recorded in the client's own history file before it is sent.
// Nothing is shared between clients on that way, and nothing is allocated.
// Histograms are derived from the history after the run.
//
// It may import supervise, impls, faultnet, scenario and history. It names no
// recipe: the program that starts a worker passes a catalogue in.
package workloads
