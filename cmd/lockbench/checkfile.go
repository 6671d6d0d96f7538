package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
)

// checkFile judges one history by its raw verdict. Beside its scenario's file
// the recipe is known, unless the flags say what to judge it by.
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

// checkHistory judges a history of which nothing is known but what the flags
// say; name is what it is called.
func (a *app) checkHistory(path, name string, o checking) error {
	if o.export == "" && size(path) > inMemory {
		return a.checkLarge(path, name, o)
	}
	h, err := history.Read(path)
	switch {
	case errors.Is(err, history.ErrNoRecords):
		return fmt.Errorf("%w; docs/history-format.md tells what can be read", err)
	case err != nil:
		return usage(err)
	case o.export != "":
		return exporters()[o.export](a.stdout, h)
	}
	return a.rawAnswer(name, measure.Bare(h, o.model), o)
}

// inMemory is the size of a history, in bytes, that is checked in memory as a
// whole. A larger one is taken apart by key first, beside itself on disk.
const inMemory = 256 << 20

func size(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0 // who reads it will say why
	}
	return st.Size()
}

// sparingly is how much garbage, in percent of what is in use, may lie about in
// the check of a large history: nearly all memory is in a few large pieces, so
// that collecting is cheap, and as much garbage as is usual would not be.
const sparingly = 10

// checkLarge is checkHistory key by key.
func (a *app) checkLarge(path, name string, o checking) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(sparingly))
	k, err := history.ReadKeyed(path, "")
	switch {
	case errors.Is(err, history.ErrNoRecords):
		return fmt.Errorf("%w; docs/history-format.md tells what can be read", err)
	case err != nil:
		return usage(err)
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	s, err := measure.BareKeyed(k, o.model)
	if err != nil {
		return err
	}
	return a.rawAnswer(name, s, o)
}

func exporters() map[string]func(io.Writer, *history.History) error {
	return map[string]func(io.Writer, *history.History) error{"jsonl": history.WriteJSONL, "edn": history.WriteEDN}
}

// stdinPath stands for standard input.
const stdinPath = "-"

// checkStdin judges what comes from standard input. It is read to its end
// first: the formats tell at their ends whether they are whole.
func (a *app) checkStdin(o checking) (err error) {
	f, err := os.CreateTemp("", "lockbench-stdin-")
	if err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = io.Copy(f, a.stdin)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	return a.checkHistory(f.Name(), "standard input", o)
}

// judged is the JSON of what a single history showed.
type judged struct {
	History string          `json:"history"` // the file's name
	Safety  scenario.Safety `json:"safety"`  // as in result.json
}

// rawAnswer prints what a single history showed.
func (a *app) rawAnswer(name string, s scenario.Safety, o checking) error {
	a.code = rawVerdict(s)
	if o.explain > 0 {
		return a.explainOne([]scenario.Result{{Name: name, Safety: s}}, o.explain)
	}
	if o.format == "json" {
		return a.printJSON(judged{History: name, Safety: s})
	}
	if s.Liveness == scenario.Undecided && s.TakeoverBoundNS == 0 {
		s.Why["liveness"] += " (--takeover tells one)"
	}
	fmt.Fprintf(a.stdout, "verdict %s: %s\npromise %s: %s\nliveness %s: %s\n", s.Verdict, s.Why["verdict"], s.Promise, s.Why["promise"], s.Liveness, s.Why["liveness"])
	for _, d := range s.Damage {
		fmt.Fprintf(a.stdout, "damage: %s\n", d)
	}
	for i, w := range s.Witnesses {
		fmt.Fprintf(a.stdout, "[%d] %s: %s\n", i+1, w.Class, w.Sentence)
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
