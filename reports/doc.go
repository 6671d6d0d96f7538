// Package reports turns a run's folder into reports: a text summary, report.html,
// report.md, plots, junit.xml, bench.txt and annotations.json.
//
// It reads files only, so a report can be rebuilt at any time, on another
// machine, and from an interrupted run. Every number comes from result.json and
// every latency curve from the latency.hlog of a scenario. This package measures
// nothing. A value that was not measured is shown as "–" with the reason, never
// as 0.
//
// Text, Markdown and HTML are renderings of one content, so they agree.
package reports
