// Package suites holds the built-in suites, as embedded YAML, and finds them
// by name. It may import scenario and nothing else of the module.
package suites
