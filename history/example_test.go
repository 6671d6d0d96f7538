package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/history"
)

// A log of another lock is read from JSON lines, one per call.
func Example() {
	log := `{"client":"web-1","kind":"acquire","key":"orders/17","outcome":"held","invoke":10,"return":20}
{"client":"web-2","kind":"try","key":"orders/17","outcome":"busy","invoke":15,"return":25}
{"client":"web-1","kind":"release","key":"orders/17","outcome":"released","invoke":30,"return":40}
`
	h, err := history.ReadJSONL(strings.NewReader(log), "locks.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range h.Calls {
		fmt.Printf("client %d, call %d: %v is %v after %d ns\n", c.Client, c.Seq, c.Kind, c.Outcome, c.Return-c.Invoke)
	}
	fmt.Println("damaged:", len(h.Damage) > 0)
	// Output:
	// client 0, call 0: acquire is held after 10 ns
	// client 1, call 0: try is busy after 10 ns
	// client 0, call 1: release is released after 10 ns
	// damaged: false
}

// A writer records a call before its request is sent, and again after the
// answer. The process of this one ends before the answer of its second call.
func ExampleWriter() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("example-%d.lbs", os.Getpid()))
	defer os.Remove(path)
	w, err := history.Create(path, history.Options{Client: 1, Clock: history.NewClock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := history.Op{Kind: history.KindTry}
	if _, err := w.Begin(&call); err != nil {
		fmt.Println(err)
		return
	}
	w.End(&history.Result{Outcome: history.Busy})
	if _, err := w.Begin(&call); err != nil {
		fmt.Println(err)
		return
	}
	h, err := history.Read(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range h.Calls {
		fmt.Println(c.Kind, c.Outcome)
	}
	// Output:
	// try busy
	// try open
}
