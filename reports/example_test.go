package reports_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/lockbench/lockbench/reports"
)

// Print the first lines of a run's report: which locks were unsafe.
func ExampleText() {
	var report strings.Builder
	if err := reports.Text(&report, "testdata/run", reports.TextOptions{Width: 100}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	first, _, _ := strings.Cut(report.String(), "\n\n")
	fmt.Println(first)
	// Output:
	// lockbench example
	// 3 scenarios · seed 1 · 2026-11-22 11:32 UTC
	// Under holder-pause: 2 of 3 locks let two clients hold the lock at once.
	// lockbench: dev
}
