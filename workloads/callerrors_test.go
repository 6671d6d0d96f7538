package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Each text stands once with its count and its first and last stamp; answers are no
// errors, long texts are cut, and many are counted together.
func TestCallErrors(t *testing.T) {
	var l callErrors
	refused := errors.New("connection refused")
	l.add(3, history.KindAcquire, history.Busy, errors.New("held by another"), 1)
	l.add(3, history.KindAcquire, history.Held, nil, 2)
	l.add(3, history.KindRelease, history.Lost, errors.New("lost"), 3)
	l.add(3, history.KindAcquire, history.Failed, refused, 4)
	l.add(3, history.KindRelease, history.Unknown, refused, 5)
	l.add(3, history.KindAcquire, history.Unknown, refused, 9)
	want := []scenario.CallError{
		{Client: 3, Kind: "acquire", Text: "connection refused", Count: 2, First: 4, Last: 9},
		{Client: 3, Kind: "release", Text: "connection refused", Count: 1, First: 5, Last: 5},
	}
	if !slices.Equal(l, want) {
		t.Errorf("%+v, want %+v", l, want)
	}
	l = nil
	for i := range 3 * errorTexts {
		l.add(3, history.KindAcquire, history.Failed, fmt.Errorf("%d %s", i, strings.Repeat("ä", errorLength)), int64(i))
	}
	if n := len(l); n != errorTexts+1 || l[n-1].Text != "" || l[n-1].Count != 2*errorTexts || l[n-1].Last != 3*errorTexts-1 {
		t.Errorf("%d texts, the last is %+v", n, l[n-1])
	}
	if text := l[0].Text; len(text) > errorLength+len("…") || !strings.HasSuffix(text, "ä…") {
		t.Errorf("the text has %d bytes: %q", len(text), text)
	}
}
