package supervise

import (
	"os"
	"runtime"
	"sync"
)

// starter is the only thread that starts a run's children. On Linux a child's
// parent-death signal fires when the thread that started it ends, so this
// thread lives as long as the run.
type starter struct {
	work chan func()
	once sync.Once
	done chan struct{}
}

func newStarter() *starter {
	s := &starter{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		// Never unlocked: Go then ends the thread with the goroutine, and runs
		// no other goroutine on it that could end it early.
		runtime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

// start is os.StartProcess on the starter's thread. It must not be called after
// stop.
func (s *starter) start(path string, argv []string, attr *os.ProcAttr) (p *os.Process, err error) {
	finished := make(chan struct{})
	s.work <- func() {
		defer close(finished)
		p, err = os.StartProcess(path, argv, attr)
	}
	<-finished
	return p, err
}

func (s *starter) stop() {
	s.once.Do(func() { close(s.work) })
	<-s.done
}
