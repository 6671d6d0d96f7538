package reports

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
)

// The files that Write makes in a run's folder.
const (
	FileHTML     = "report.html"
	FileStyle    = "report.css" // of WriteSplit
	FileScript   = "report.js"
	FileMarkdown = "report.md"
	FileJUnit    = "junit.xml"
	FileBench    = "bench.txt"
	DirPlots     = "plots"
	// FileAnnotations is written where faults had an effect.
	FileAnnotations = "annotations.json"
)

// TextOptions are the options of Text.
type TextOptions struct {
	// Color allows ANSI colours.
	Color bool
	// Width is the number of columns in a line; 0 means 120. A wider table is
	// split into several, each of which repeats the row names.
	Width int
}

// Text writes the report of the run in dir as text. It reads result.json, and
// environment.json if there is one.
func Text(w io.Writer, dir string, o TextOptions) error {
	r, err := load(dir)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, renderText(build(r), o)); err != nil {
		return fmt.Errorf("write the text report: %w", err)
	}
	return nil
}

// Summary writes the first screen of the run's report as Markdown, without links to
// files: for the page of a pipeline.
func Summary(w io.Writer, dir string) error {
	r, err := load(dir)
	if err != nil {
		return err
	}
	c := build(r)
	c.Sections = slices.DeleteFunc(c.Sections, func(s section) bool { return s.Title != "RESULTS" && s.Title != "THRESHOLDS" })
	c.Facts, c.Notes, c.Links = nil, nil, nil
	for _, s := range c.Sections {
		for _, t := range s.Tables {
			for _, x := range t.Rows {
				for i := range x.Cells {
					x.Cells[i].Link, x.Cells[i].Marks = "", nil
				}
			}
		}
	}
	if _, err := io.WriteString(w, renderMarkdown(c)); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// Write builds every report of the run in dir from its result.json,
// environment.json and latency.hlog files, and replaces existing reports.
//
// Only result.json is required; the report names the other files that are
// missing. If one report cannot be written, the others still are; the error names
// each report that failed.
func Write(dir string) error { return write(dir, false) }

// WriteSplit is Write with the page's style and script in files beside it, for servers
// that allow none within a page.
func WriteSplit(dir string) error { return write(dir, true) }

func write(dir string, split bool) error {
	r, err := load(dir)
	if err != nil {
		return err
	}
	c := build(r)
	plots, notes, err := drawPlots(r)
	c.Plots = plots
	c.PlotNotes = notes
	errs := []error{err}
	put := func(name string, data []byte, err error) {
		if err == nil {
			err = replace(filepath.Join(dir, name), data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", name, err))
		}
	}
	if data, err := annotations(r.doc); data != nil || err != nil {
		put(FileAnnotations, data, err)
	}
	c.Links = links(r)
	data, err := renderHTML(c, r, split)
	put(FileHTML, data, err)
	if split {
		put(FileStyle, []byte(pageStyle), nil)
		put(FileScript, []byte(pageScript), nil)
	}
	put(FileMarkdown, []byte(renderMarkdown(c)), nil)
	data, err = junit(r)
	put(FileJUnit, data, err)
	put(FileBench, bench(r.doc), nil)
	if data, err := claimsFile(r); data != nil || err != nil {
		put(claims.File, data, err)
	}
	return errors.Join(errs...)
}

func replace(path string, data []byte) error {
	return scenario.ReplaceFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
