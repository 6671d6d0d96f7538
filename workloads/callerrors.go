package workloads

import (
	"strings"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	// errorTexts bounds how many texts of a client's calls of one kind are kept apart.
	// What comes after them is counted without its text.
	errorTexts = 8
	// errorLength bounds a text, in bytes.
	errorLength = 160
)

// callErrors are the errors of one client's calls, each text once. It belongs to the
// goroutine of the client.
type callErrors []scenario.CallError

// add keeps the error of a call that returned at a stamp without the answer it asked
// for. That a lock is held or lost is an answer.
func (l *callErrors) add(client uint32, kind history.Kind, outcome history.Outcome, err error, at int64) {
	if err == nil || outcome != history.Failed && outcome != history.Unknown {
		return
	}
	text := err.Error()
	if len(text) > errorLength {
		text = strings.ToValidUTF8(text[:errorLength], "") + "…"
	}
	texts := 0
	for i := range *l {
		e := &(*l)[i]
		if e.Kind != kind.String() {
			continue
		}
		if e.Text == text || e.Text == "" {
			e.Count++
			e.Last = at
			return
		}
		texts++
	}
	if texts == errorTexts {
		text = ""
	}
	*l = append(*l, scenario.CallError{Client: client, Kind: kind.String(), Text: text, Count: 1, First: at, Last: at})
}
