package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// explainWidth is the width of an explanation.
const explainWidth = 100

// moment is one line of an explanation: an event of one client.
type moment struct {
	at     int64
	client uint32
	text   string
	held   int // 1: a hold begins; -1: one ends
	fault  bool
}

// explain draws a witness as a table: time goes down, each client has a column, and
// a bar in it is a hold as the client observed it. The last column has the faults
// that were in force.
func explain(w io.Writer, name string, n, total int, x scenario.Witness, faults []scenario.FaultResult) {
	key := x.KeyName
	if key == "" {
		key = fmt.Sprintf("k%d", x.Key)
	}
	fmt.Fprintf(w, "%s: violation %d of %d: %s on %s\n\n", name, n, total, x.Class, key)
	for _, line := range foldWords(x.Sentence, explainWidth) {
		fmt.Fprintln(w, line)
	}
	if x.Cause != "" {
		fmt.Fprintln(w, causeText(x.Cause))
	}
	if lines := linesText(x); lines != "" {
		fmt.Fprintln(w, "in the log:", lines)
	}
	moments := momentsOf(x.Calls)
	if len(moments) == 0 {
		return
	}
	var clients []uint32
	names := map[uint32]string{}
	for _, c := range x.Calls {
		if !slices.Contains(clients, c.Client) {
			clients = append(clients, c.Client)
		}
		names[c.Client] = clientName(c)
	}
	slices.Sort(clients)
	columns := len(clients)
	if list := faultMoments(x, faults); len(list) > 0 {
		columns++
		moments = append(moments, list...)
		slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	}
	const timeWidth = 16
	column := min(40, (explainWidth-timeWidth)/columns)
	row := func(at string, cells []string) {
		line := fmt.Sprintf("%*s  ", timeWidth-2, at)
		for _, cell := range cells {
			line += fmt.Sprintf("%-*s", column, cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w)
	head := make([]string, columns)
	for i, c := range clients {
		head[i] = names[c]
	}
	if columns > len(clients) {
		head[len(clients)] = "faults"
	}
	row("s", head)
	holds := make([]int, len(clients))
	for i, m := range moments {
		k := slices.Index(clients, m.client)
		if m.fault {
			k = len(clients)
		} else {
			holds[k] += m.held
		}
		cells, both := make([]string, columns), 0
		for j, h := range holds {
			if h > 0 {
				cells[j] = "|"
				both++
			}
		}
		cells[k] = m.text
		// The earlier hold of a stuck key has no end, and is not an overlap.
		if both > 1 && m.held > 0 && x.Class != string(checker.StuckKey) {
			note := " <- " + counted(both) + " hold it"
			if last := len(cells) - 1; k < last && len(m.text+note) >= column {
				k = last // beside the grant it would shift the columns after it
			}
			cells[k] += note
		}
		row(fmt.Sprintf("%.6f", time.Duration(m.at).Seconds()), cells)
		if i+1 < len(moments) && moments[i+1].at-m.at > int64(time.Millisecond) {
			gap := make([]string, len(clients))
			for j, h := range holds {
				if h > 0 {
					gap[j] = "|"
				}
			}
			row("+ "+(time.Duration(moments[i+1].at-m.at)).Round(time.Microsecond).String(), gap)
		}
	}
}

// causeText is the line about the cause of a violation.
func causeText(cause string) string {
	if cause == checker.NoKnownCause {
		return cause
	}
	return "cause: " + cause
}

// faultMoments are the beginnings and ends of the faults of a witness.
func faultMoments(x scenario.Witness, faults []scenario.FaultResult) []moment {
	var list []moment
	for _, f := range faults {
		if !slices.Contains(x.Faults, f.ID) || f.InjectedNS == 0 {
			continue
		}
		list = append(list, moment{at: f.InjectedNS, fault: true, text: f.ID + " ..."})
		if f.HealedNS > f.InjectedNS {
			list = append(list, moment{at: f.HealedNS, fault: true, text: "... " + f.ID + " healed"})
		}
	}
	return list
}

func counted(n int) string {
	if n == 2 {
		return "both"
	}
	return fmt.Sprintf("all %d", n)
}

func clientName(c scenario.WitnessCall) string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Client == history.Controller:
		return "the counter"
	}
	return fmt.Sprintf("client %d", c.Client)
}

// momentsOf are the beginnings and ends of calls, by time.
func momentsOf(calls []scenario.WitnessCall) []moment {
	var list []moment
	for _, c := range calls {
		token := ""
		if c.Fence != 0 {
			token = fmt.Sprintf(", token %d", c.Fence)
		}
		begin := moment{at: c.InvokeNS, client: c.Client, text: c.Kind + " ..."}
		if c.Kind == "lost" || c.Kind == "final" {
			begin.text = c.Kind + token
		}
		if c.Ends() && holdsBefore(calls, c) {
			begin.held = -1
		}
		list = append(list, begin)
		if c.Kind == "lost" || c.Kind == "final" {
			continue
		}
		end := moment{at: c.ReturnNS, client: c.Client, text: "... " + c.Outcome + token}
		if c.Granted() {
			end.held = 1
		}
		if c.ReturnNS != 0 {
			list = append(list, end)
		}
	}
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return list
}

// holdsBefore reports whether c is the first call that ends the hold of its
// attempt.
func holdsBefore(calls []scenario.WitnessCall, c scenario.WitnessCall) bool {
	granted, first := false, true
	for _, o := range calls {
		if o.Client != c.Client || o.Attempt != c.Attempt {
			continue
		}
		switch {
		case o.Granted():
			granted = granted || o.ReturnNS <= c.InvokeNS
		case o.Ends():
			first = first && (o.InvokeNS > c.InvokeNS || o.InvokeNS == c.InvokeNS && o.Seq >= c.Seq)
		}
	}
	return granted && first
}
