package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports"
)

// checkFile judges one history by its raw verdict. The recipe is known from the
// scenario file beside it, unless flags name a model.
func (a *app) checkFile(path string, o checking) error {
	dir := filepath.Dir(path)
	if exists(filepath.Join(dir, scenario.FileScenario)) && filepath.Base(path) == scenario.FileHistory && o.model == (measure.Model{}) && o.export == "" {
		r, err := a.remeasure(dir)
		if err != nil {
			return err
		}
		return a.rawAnswer(r.Name, r.Safety, o)
	}
	return a.checkHistory(path, filepath.Base(path), o)
}

// checkHistory judges or exports a history by the flags alone; name is shown in the
// output. It takes a few keys into memory at a time.
func (a *app) checkHistory(path, name string, o checking) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(lowGarbage))
	k, err := history.ReadKeyed(path, "")
	switch {
	case errors.Is(err, history.ErrNoRecords):
		return fmt.Errorf("%w; see docs/history-format.md for the formats", err)
	case err != nil:
		return usage(err)
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if o.export != "" {
		return exporters()[o.export](k, filepath.Dir(path), a.stdout)
	}
	s, err := measure.Bare(k, o.model)
	if err != nil {
		return err
	}
	if !o.merge { // of several files a line number alone says little
		if err := findLines(path, s.Witnesses); err != nil {
			return err
		}
	}
	return a.rawAnswer(name, s, o)
}

// findLines notes on which lines of a log the calls of witnesses stand.
func findLines(path string, witnesses []scenario.Witness) error {
	var ids []history.CallID
	for _, w := range witnesses {
		for _, c := range w.Calls {
			ids = append(ids, history.CallID{Client: c.Client, Seq: c.Seq})
		}
	}
	lines, err := history.Lines(path, ids)
	if err != nil {
		return err
	}
	for _, w := range witnesses {
		for i, c := range w.Calls {
			w.Calls[i].Line = lines[history.CallID{Client: c.Client, Seq: c.Seq}]
		}
	}
	return nil
}

// linesText names the lines of a witness's calls, in the order of the file; "" if
// they have none.
func linesText(w scenario.Witness) string {
	var lines []int
	for _, c := range w.Calls {
		if c.Line > 0 {
			lines = append(lines, c.Line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	words := make([]string, 0, len(lines))
	for _, n := range slices.Compact(lines) {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) == 1 {
		return "line " + words[0]
	}
	return "lines " + strings.Join(words, ", ")
}

// lowGarbage is the GC percentage for a history: nearly all memory is in a few
// large allocations, so that collecting is cheap and garbage is not.
const lowGarbage = 10

// exporters write a history of a folder in other formats.
func exporters() map[string]func(k *history.Keyed, dir string, w io.Writer) error {
	return map[string]func(*history.Keyed, string, io.Writer) error{
		"jsonl": func(k *history.Keyed, _ string, w io.Writer) error { return k.WriteJSONL(w) },
		"edn":   func(k *history.Keyed, _ string, w io.Writer) error { return k.WriteEDN(w) },
		"trace": func(k *history.Keyed, dir string, w io.Writer) error {
			faults, _, err := scenario.ReadFaults(dir)
			if err != nil {
				return err
			}
			return reports.WriteTrace(w, k, faults)
		},
	}
}

// stdinPath means standard input.
const stdinPath = "-"

// checkStdin judges standard input.
func (a *app) checkStdin(ctx context.Context, o checking) error {
	if isTerminal(a.stdin) {
		fmt.Fprintln(a.stderr, "lockbench: reading a history from standard input; end it with Ctrl-D")
	}
	return a.checkStream(ctx, a.stdin, "standard input", o)
}

// checkPipe judges a pipe, as a shell gives it for <(...).
func (a *app) checkPipe(ctx context.Context, path string, o checking) error {
	f, err := os.Open(path)
	if err != nil {
		return usage(err)
	}
	defer f.Close() // only read: nothing to lose
	return a.checkStream(ctx, f, path, o)
}

// checkMerged judges several logs as one history.
func (a *app) checkMerged(ctx context.Context, paths []string, o checking) error {
	var all []io.Reader
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return usage(err)
		}
		defer f.Close() // only read: nothing to lose
		if st, err := f.Stat(); err != nil || st.IsDir() {
			return usage(fmt.Errorf("--merge takes logs of JSON lines or EDN, and %s is a folder", path))
		}
		all = append(all, f, strings.NewReader("\n"))
	}
	return a.checkStream(ctx, io.MultiReader(all...), strings.Join(paths, " + "), o)
}

// checkStream judges what can be read only once. It stores all of it first, since
// only the end of a history shows whether it is complete.
func (a *app) checkStream(ctx context.Context, r io.Reader, name string, o checking) (err error) {
	f, err := os.CreateTemp("", "lockbench-stdin-")
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(f, r)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done(): // a read may never return
		return ctx.Err()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return a.checkHistory(f.Name(), name, o)
}

// judged is the JSON result of a single history.
type judged struct {
	History string          `json:"history"` // the file's name
	Safety  scenario.Safety `json:"safety"`  // as in result.json
}

// rawAnswer prints the result of a single history.
func (a *app) rawAnswer(name string, s scenario.Safety, o checking) error {
	a.code = rawVerdict(s)
	if o.explain > 0 {
		return a.explainOne([]scenario.Result{{Name: name, Safety: s}}, o.explain)
	}
	if o.format == "json" {
		return a.printJSON(judged{History: name, Safety: s})
	}
	if s.Liveness == scenario.Undecided && s.TakeoverBoundNS == 0 {
		s.Why["liveness"] += " (set --takeover)"
	}
	fmt.Fprintf(a.stdout, "verdict %s: %s\nguarantee %s: %s\nliveness %s: %s\n", s.Verdict, s.Why["verdict"], s.Promise, s.Why["promise"], s.Liveness, s.Why["liveness"])
	for _, d := range s.Damage {
		fmt.Fprintf(a.stdout, "damage: %s\n", d)
	}
	for i, w := range s.Witnesses {
		fmt.Fprintf(a.stdout, "[%d] %s: %s\n", i+1, w.Class, w.Sentence)
		if lines := linesText(w); lines != "" {
			fmt.Fprintf(a.stdout, "    in the log: %s\n", lines)
		}
	}
	return nil
}

func rawVerdict(s scenario.Safety) exitCode {
	switch {
	case s.Verdict == scenario.Unsafe, s.Promise == scenario.Broken, s.Liveness == scenario.Stuck:
		return exitUnsafe
	case s.Verdict == scenario.Safe && s.Promise == scenario.Kept && len(s.Damage) == 0:
		return exitOK
	}
	return exitInconclusive
}
