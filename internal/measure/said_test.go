package measure

import (
	"testing"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The uncertainty of the clocks of a witness is reported where a reader could see it.
func TestWhatTheClocksMayBeOff(t *testing.T) {
	d := &derivation{input: &input{history: &history.History{Streams: []history.Stream{
		{Client: 0, ClockUncertainty: 2_000_000}, {Client: 1, ClockUncertainty: 3_000_000}, {Client: 2, ClockUncertainty: 9_000_000}, {Client: 3, ClockUncertainty: 40},
	}}}}
	for want, clients := range map[string][]uint32{"; by their uncertainty the clocks may be off by 3ms, which is allowed for": {0, 1}, "": {3, 3}} {
		w := checker.Witness{Calls: []history.Call{{Client: clients[0]}, {Client: clients[1]}}}
		if got := d.inexact(w); got != want {
			t.Errorf("%v: %q", clients, got)
		}
	}
}

// A witness quotes what the library said of its calls that failed, on one line, and of
// no other client, kind or time.
func TestWhatTheLibrarySaid(t *testing.T) {
	d := &derivation{input: &input{history: &history.History{}}}
	d.samples.Workers = []scenario.WorkerSample{{Errors: []scenario.CallError{
		{Client: 1, Kind: "acquire", Text: "dial tcp:\n\x1b[31mrefused", Count: 282, First: 100, Last: 900},
		{Client: 1, Kind: "acquire", Text: "timeout", Count: 1, First: 950, Last: 950},
		{Client: 1, Kind: "acquire", Count: 5, First: 700, Last: 900},
		{Client: 1, Kind: "release", Text: "no release", Count: 1, First: 500, Last: 500},
		{Client: 2, Kind: "acquire", Text: "another client", Count: 1, First: 500, Last: 500},
	}}}
	call := func(outcome history.Outcome, ret int64) history.Call {
		return history.Call{Client: 1, Kind: history.KindAcquire, Outcome: outcome, Invoke: 50, Return: ret}
	}
	for want, calls := range map[string][]history.Call{
		`; the error of client 1's acquire: dial tcp: \u001b[31mrefused (282 times)`:                                    {call(history.Failed, 500), call(history.Failed, 600)},
		`; the error of client 1's acquire: timeout`:                                                                    {call(history.Unknown, 950)},
		`; the error of client 1's acquire: timeout, or of client 1's acquire: dial tcp: \u001b[31mrefused (282 times)`: {call(history.Unknown, 950), call(history.Failed, 100)},
		`; the error of client 1's acquire: dial tcp: \u001b[31mrefused (282 times), or one of others`:                  {call(history.Failed, 700)}, // whose text may not have been kept
		"": {call(history.Held, 500), call(history.Busy, 950), call(history.Failed, 920)},
	} {
		if got := d.said(checker.Witness{Calls: calls}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
