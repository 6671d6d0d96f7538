// Package scenario is the specification of experiments and the shape of their
// results: suites and scenarios as YAML, their validation, and the types of
// the files in a run's folder.
//
// It holds no behaviour beyond reading, checking and expanding specifications.
// It may import a YAML library; it knows no recipes, so whoever validates passes
// in what the recipes say.
package scenario
