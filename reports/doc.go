// Package reports turns a run's folder into what people and machines read: the
// summary on the terminal, report.html, report.md, the plots, junit.xml and
// bench.txt.
//
// It reads files only, so a report can be built again at any time, on another
// machine, from a run that was cut short. Every number comes from result.json,
// the curves from the latency.hlog of each scenario; nothing is measured here,
// and what was not measured is shown as "–" with its reason, never as 0.
//
// One content is built from a document (see content) and rendered three times,
// as text, Markdown and HTML, so that the three cannot disagree.
//
// It may import scenario, hdrhistogram-go and gonum/plot; it knows no servers,
// recipes or checks.
package reports
