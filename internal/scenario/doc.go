// Package scenario is the specification of experiments and the shape of their
// results: suites and scenarios as YAML, their validation, and the types of
// the files in a run's folder.
//
// It only reads, checks and expands specifications. It knows no recipes: the
// caller passes in a Catalogue.
//
// A new parameter of a workload is one field of Load with its tags (see field in
// parameter.go), an entry in result.schema.json, and its use in workloads.
package scenario
