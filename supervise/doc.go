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
//     after the start, so that the Sweep of a later run can find what was left
//     over, and tell it from a stranger with the same pid. It is the only net
//     where there is no parent-death signal (macOS), and the second one where a
//     server lost the signal by changing its user.
//
// Runs that are alive at the same time never touch one another.
//
// It may import the standard library and golang.org/x/sys only, and knows
// nothing of servers, workers or faults.
package supervise
