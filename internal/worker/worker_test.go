package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/supervise"
)

// envChild makes a copy of the test binary a worker.
const envChild = "LOCKBENCH_TEST_WORKER"

type request struct {
	Serial uint64
	Do     string
}

type reply struct {
	Serial uint64
	Text   string
}

func (r reply) ReplyTo() uint64 { return r.Serial }

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	_ = out.Encode(reply{Text: "ready"})
	for {
		var r request
		if in.Decode(&r) != nil {
			os.Exit(0)
		}
		switch r.Do {
		case "ignore":
		case "print":
			fmt.Println("not JSON")
		case "exit":
			os.Exit(3)
		default:
			_ = out.Encode(reply{r.Serial, r.Do})
		}
	}
}

func start(t *testing.T) (*Process[reply], <-chan reply) {
	t.Helper()
	run, err := supervise.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := run.End(ctx); err != nil {
			t.Error(err)
		}
	})
	reports := make(chan reply, 1)
	p, err := Start(Options[reply]{
		Run: run, OnReport: func(r reply) { reports <- r }, Explain: func() string { return "; explained" },
		Command: supervise.Command{Name: "worker", Path: os.Args[0], Env: append(os.Environ(), envChild+"=1"), Stderr: os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, reports
}

func (p *Process[R]) ask(do string) *Call[R] {
	return p.Call(func(serial uint64) any { return request{serial, do} })
}

// Calls are answered by their numbers, and a report needs no call.
func TestCalls(t *testing.T) {
	p, reports := start(t)
	if r := <-reports; r.Text != "ready" {
		t.Errorf("reported %+v", r)
	}
	ignored, a, b := p.ask("ignore"), p.ask("a"), p.ask("b")
	<-b.Done
	<-a.Done
	if a.Err != nil || a.Reply.Text != "a" || b.Err != nil || b.Reply.Text != "b" {
		t.Errorf("answers %+v and %+v", a, b)
	}
	select {
	case <-ignored.Done:
		t.Error("a call without an answer is done")
	default:
	}
}

// When a process ends, every call without an answer fails, and every later one.
func TestEnd(t *testing.T) {
	for do, want := range map[string]string{"exit": "exit status 3", "print": "cannot be read"} {
		p, reports := start(t)
		<-reports
		open, last := p.ask("ignore"), p.ask(do)
		<-p.Gone()
		for _, c := range []*Call[reply]{open, last, p.ask("too late")} {
			<-c.Done
			if !errors.Is(c.Err, ErrGone) || !strings.Contains(c.Err.Error(), want) || !strings.HasSuffix(c.Err.Error(), "; explained") {
				t.Errorf("after %s: %v, want %q", do, c.Err, want)
			}
		}
		if err := p.Failure(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: failed with %v, want %q", do, err, want)
		}
	}
}

// A frozen process answers when it goes on; every thread of it has stopped.
func TestFreeze(t *testing.T) {
	p, reports := start(t)
	<-reports
	if err := p.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if still, err := p.Stopped(); err != nil || !still {
		t.Errorf("stopped %v, %v", still, err)
	}
	c := p.ask("later")
	select {
	case <-c.Done:
		t.Errorf("a frozen process answered %+v", c)
	default:
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if <-c.Done; c.Err != nil || c.Reply.Text != "later" {
		t.Errorf("answered %+v", c)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Gone()
	if err := p.Freeze(t.Context()); err == nil {
		t.Error("a process that has ended was frozen")
	}
}
