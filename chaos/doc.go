// Package chaos injects faults on a schedule, aims them at whoever holds the
// lock when they fire, or at a client that stands at a named step of its
// recipe, and always heals what can be healed.
//
// A fault that found no target, hit somebody else, or came too late is
// recorded as missed; it never counts as survived. Every step is a line of
// faults.jsonl, written before the step is taken where the step could outlive
// us.
//
// Faults go only to processes that the run itself started: chaos reaches them
// through the Process interface, whose signals check that the process is still
// the one that was started.
//
// It may import history and scenario; what it needs of workers and servers it
// states as interfaces.
package chaos
