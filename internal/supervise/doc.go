// Package supervise starts child processes that cannot outlive a run: servers
// and worker processes alike.
//
// A run has a folder of its own, <base>/lockbench-<uid>/<id>/, and a lock on a
// file in it for as long as its process lives. Whatever way that process ends,
// its children end too:
//
//   - Run.End stops them, politely first;
//   - on Linux each child carries a parent-death signal, which the kernel sends
//     when the thread that started it ends. Go moves goroutines between threads
//     and may end one, so all children of a run are started by one thread that
//     lives as long as the run;
//   - a program that starts processes of its own runs under a shell that kills
//     the whole group when a pipe from us ends (Command.Family);
//   - each pid is written to the run's journal with its start time at once
//     after the start, so that whoever comes later can find what was left over,
//     and tell it from a stranger with the same pid. Faults stand there too,
//     before they are injected (Run.NoteFault);
//   - a watchdog (Run.Watch) reads a pipe from us. If the run's folder is still
//     there when that ends, it kills what the journal names, and what those
//     processes had started in turn; it tells which faults were in force, and
//     removes the folder. What was stopped or had lost its signal ends so, and
//     everything where there is no parent-death signal (macOS);
//   - the Sweep of a later run does the same, should the watchdog have died too.
//
// Runs that are alive at the same time never touch one another.
//
// It may import the standard library and golang.org/x/sys only, and knows
// nothing of servers and workers, and of faults no more than their names.
package supervise
