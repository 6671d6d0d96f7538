// Package chaos injects faults on a schedule and always heals those that can be
// healed. A fault chooses its target when it fires: the client that holds the
// lock then, waits for it or is at a named step of its recipe, the server that
// leads or serves the holder, a minority.
//
// Faults run side by side, each at its time. A resource that two faults would
// undo for each other (a stopped process, a clock that is set) belongs to one
// fault at a time; network rules add up. A fault counts as injected when its
// effect has been confirmed and its target was then still valid. Otherwise it is
// undone and the next target is tried, as long as the window allows. A fault that
// found no target, hit another client or came too late is recorded as missed; it
// never counts as survived.
//
// Before a step is taken, its undo is put on a stack, and in the journal, which
// outlives this process. The stack is always undone from its top: at the end of
// each fault, and for the rest at the end of the run, after an error or a panic,
// on a context of its own. Only stopped clients go on before the rest when the
// run ends, because they lift the rules of other clients.
//
// Faults go only to processes that the run itself started: chaos reaches clients
// through the Process interface, whose signals check that the process is still
// the one that was started, and servers through the Servers interface.
//
// It may import faultnet, history and scenario; its needs of workers, the network
// and servers are interfaces.
package chaos
