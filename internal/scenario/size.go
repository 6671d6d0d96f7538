package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written "500MB" or "2GiB".
type Size int64

var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// Set reads a size.
func (s *Size) Set(text string) error {
	number, unit := strings.TrimSpace(text), 1.0
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n*unit >= math.MaxInt64 {
		return fmt.Errorf("invalid size %q: write a number and a unit, such as 500MB or 2GiB", text)
	}
	*s = Size(n * unit)
	return nil
}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error { return s.Set(string(text)) }

// String writes it, rounded, in the largest unit that leaves at least 1.
func (s Size) String() string {
	if s == 0 {
		return ""
	}
	for _, u := range []int{7, 6, 5, 4} {
		if x := float64(s) / sizeUnits[u].bytes; x >= 1 {
			return strconv.FormatFloat(x, 'g', 3, 64) + sizeUnits[u].name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Type names it in the help of a flag.
func (s *Size) Type() string { return "size" }
