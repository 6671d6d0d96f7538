// Package supervise starts child processes that cannot outlive a run: servers
// and worker processes alike.
//
// A run has its own folder, <base>/lockbench-<uid>/<id>/, and locks a file in
// it while its process lives. However that process ends, its children end too:
//
//   - Run.End stops them, with SIGTERM first;
//   - on Linux each child has a parent-death signal, which the kernel sends
//     when the thread that started it ends. Go moves goroutines between threads
//     and may end a thread, so one thread that lives as long as the run starts
//     all children;
//   - a program that starts processes of its own runs under a shell that kills
//     the whole group when a pipe from the run's process ends (Command.Family);
//   - each pid is written to the run's journal with its start time right after
//     the start, so that a later process can find it, and distinguish it from
//     another process with the same pid. Faults are written there too, before
//     they are injected (Run.NoteFault);
//   - a watchdog (Run.Watch) reads a pipe from the run's process. If the run's
//     folder still exists when the pipe ends, it kills the processes in the
//     journal and their descendants, reports the faults in force, and removes
//     the folder. This ends stopped processes, those that lost their signal,
//     and all processes where there is no parent-death signal (macOS);
//   - the Sweep of a later run does the same if the watchdog died too.
//
// Live runs never affect one another.
//
// The package may import the standard library and golang.org/x/sys only. It
// knows nothing of servers and workers, and only the names of faults.
package supervise
