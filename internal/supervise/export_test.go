package supervise

// WatchdogPID is the pid of the run's watchdog.
func (r *Run) WatchdogPID() int { return r.dog.os.Pid }
