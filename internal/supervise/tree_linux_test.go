package supervise

import (
	"context"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"
)

// startTree starts a program whose two children are in sessions of their own.
func startTree(t *testing.T) (run *Run, p *Process, children []int) {
	t.Helper()
	run, err := Begin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p, err = run.Start(Command{Name: "tree", Path: "/bin/sh", Tree: true,
		Args: []string{"-c", "setsid sleep 1000 & setsid sleep 1000 & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		list, err := descendants(p.PID(), false)
		if err != nil {
			t.Fatal(err)
		}
		apart := 0
		for _, pid := range list {
			if group, err := syscall.Getpgid(pid); err == nil && group == pid {
				apart++
			}
		}
		if apart == 2 {
			return run, p, list
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTreeStopsAndGoesOnTogether(t *testing.T) {
	_, p, children := startTree(t)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.AwaitStopped(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		if still, err := stopped(pid); err != nil || !still {
			t.Errorf("pid %d runs though its tree is stopped (%v)", pid, err)
		}
	}
	// One process that runs is enough to make the tree count as running.
	if err := syscall.Kill(children[1], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for still := true; still; time.Sleep(time.Millisecond) {
		var err error
		if still, err = p.Stopped(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		for still := true; still; time.Sleep(time.Millisecond) {
			var err error
			if still, err = stopped(pid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTreeIsKilledTogether(t *testing.T) {
	for _, kill := range []func(*Process) error{
		(*Process).Kill,
		func(p *Process) error { return p.Stop(context.Background(), time.Minute) },
		func(p *Process) error { return p.Signal(syscall.SIGKILL) },
	} {
		_, p, children := startTree(t)
		if err := kill(p); err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		for _, pid := range children {
			for lives(pid) {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// The CPU time of a tree includes a grandchild that has ended.
func TestCPUTimeOfATree(t *testing.T) {
	run, err := Begin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer run.End(context.Background())
	const loop = `setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read line`
	p, err := run.Start(Command{Name: "tree", Path: "/bin/sh", Tree: true, StdinPipe: true, StdoutPipe: true, Args: []string{"-c", loop}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdin.Close()
	defer p.Stdout.Close()
	if _, err := io.ReadFull(p.Stdout, make([]byte, len("done\n"))); err != nil {
		t.Fatal(err)
	}
	own, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	if tree, err := TreeCPU(p.PID()); err != nil || tree < 20*time.Millisecond || tree <= own {
		t.Errorf("the tree used %v (%v), its top %v", tree, err, own)
	}
}

func lives(pid int) bool {
	state, err := state(pid)
	return err == nil && state != 'Z'
}

// A dead run's tree whose top is gone is found by the mark of the run.
func TestOrphansOfATree(t *testing.T) {
	run, p, children := startTree(t)
	top := entry{PID: p.PID(), StartTime: p.StartTime(), Name: "tree", Tree: true}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	killed, err := killOrphans(run.Dir()+"-of-another", []entry{top})
	if err != nil || len(killed) != 0 {
		t.Errorf("without the mark of the run %v are killed (%v)", killed, err)
	}
	killed, err = killOrphans(run.Dir(), []entry{top})
	if err != nil || len(killed) != len(children) {
		t.Errorf("killed %v (%v), want %v", killed, err, children)
	}
	for _, k := range killed {
		if !slices.Contains(children, k.PID) {
			t.Errorf("killed %v, which is none of %v", k, children)
		}
	}
}
