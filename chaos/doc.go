// Package chaos injects faults on a schedule and always heals what can be
// healed. A fault is aimed when it fires: at whoever holds the lock then, waits
// for it or stands at a named step of its recipe, at the server that leads or
// serves the holder, at a minority.
//
// Faults run side by side, each at its time. What two of them would undo for
// each other (a process that is stopped, a clock that is set) belongs to one at a
// time; rules of the wire add up. A fault counts as injected when its effect has
// been confirmed and its target was then still what it was chosen for; else what
// was done is undone and the next target is tried, as long as the window allows.
// A fault that found no target, hit somebody else or came too late is recorded
// as missed; it never counts as survived.
//
// Every step is on a stack with its way back before it is taken, and in the
// journal, which outlives us. The stack is undone from its top whatever happens:
// at the end of each fault, and for what is left at the end of the run, after an
// error or a panic, on a context of its own. Only clients that stand still when
// the run ends go on before the rest, since others' rules are lifted by them.
//
// Faults go only to processes that the run itself started: chaos reaches clients
// through the Process interface, whose signals check that the process is still
// the one that was started, and servers through the Servers interface.
//
// It may import faultnet, history and scenario; what it needs of workers, wires
// and servers it states as interfaces.
package chaos
