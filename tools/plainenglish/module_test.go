//go:build !race

package main

import (
	"strings"
	"testing"
)

// make lint, and so make test, makes the same check. The race detector has nothing
// to find in it, and makes it seven times as slow.
func TestTextOfThisModuleIsPlainEnglish(t *testing.T) {
	var out strings.Builder
	if err := check(&out, "../..", "", false, false); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
