package reports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The tag of the histograms for the curves; latency.hlog has other tags too.
const tagAcquire = "acquire"

// latencies merges the intervals of one tag in the latency.hlog files of some
// runs. It returns nil if there are none, and an error if a file is damaged: half
// a histogram would be a wrong curve.
func (r run) latencies(rs []result, tag string) (*hdrhistogram.Histogram, error) {
	var sum *hdrhistogram.Histogram
	for _, res := range done(rs) {
		name := filepath.Join(scenario.DirScenarios, res.Name, scenario.FileLatency)
		if r.dir == "" || !filepath.IsLocal(name) {
			continue
		}
		f, err := os.Open(filepath.Join(r.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sum, err = merge(sum, f, tag)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return sum, nil
}

// merge reads a histogram log and adds the intervals of one tag to sum, which may be
// nil. It filters the lines first, since the decoder would decode every tag.
func merge(sum *hdrhistogram.Histogram, in io.Reader, tag string) (*hdrhistogram.Histogram, error) {
	var lines bytes.Buffer
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), 8<<20)
	for s.Scan() {
		if l := s.Text(); strings.HasPrefix(l, "#") || strings.HasPrefix(l, "Tag="+tag+",") {
			lines.WriteString(l + "\n")
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	reader := hdrhistogram.NewHistogramLogReader(&lines)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			return nil, fmt.Errorf("read the histogram log: %w", err)
		}
		if h == nil {
			return sum, nil
		}
		if sum == nil {
			sum = h
		} else {
			sum.Merge(h)
		}
	}
}
