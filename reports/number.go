package reports

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/printable"
)

// none is shown for a value that was not measured.
const none = "–"

// noReason is shown where result.json has no reason.
const noReason = "no reason recorded"

// digits3 prints v with three significant digits: 1.24, 12.4, 124.
func digits3(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.001:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a < 0.9995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}

// scaled picks the largest unit of which v, rounded to three digits, is at
// least one, so that 999.9 µs reads 1.00ms and not 1000µs.
func scaled(v float64, units []unit) string {
	for i, u := range units {
		if x := v / u.size; math.Abs(x) >= 0.9995 || i == len(units)-1 {
			return digits3(x) + u.name
		}
	}
	return digits3(v)
}

type unit struct {
	size float64
	name string
}

// nanos prints a length of time in nanoseconds as Go would, with three digits.
func nanos(ns float64) string {
	switch {
	case math.IsNaN(ns) || math.IsInf(ns, 0):
		return none
	case ns == 0:
		return "0s"
	case math.Abs(ns) >= 99.95*1e9:
		return time.Duration(ns).Round(time.Second).String()
	case math.Abs(ns) < 999.5:
		return strconv.FormatFloat(ns, 'f', 0, 64) + "ns"
	}
	return scaled(ns, []unit{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}})
}

// stamp prints a point in time of a scenario in seconds, with microseconds.
func stamp(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 6, 64) + "s" }

// rate prints a number that was estimated: 412, 61.2k, 1.24M.
func rate(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	return scaled(v, []unit{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}})
}

// number prints a plain number with three digits.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	return digits3(v)
}

// count prints a number that was counted, to the last digit.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	if len(s) <= 4 {
		return sign + s
	}
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return sign + strings.Join(append([]string{s}, parts...), ",")
}

func size(n int64) string {
	return scaled(float64(n), []unit{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}})
}

// clean makes s one line without control characters.
func clean(s string) string { return printable.Line(s) }

func plural(n int, one, many string) string {
	return counted(int64(n), one, many)
}

// list joins words: "a", "a and b", "a, b and c".
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// listed is a sentence that names the words; no words, no sentence.
func listed(what string, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return []string{what + ": " + list(words) + "."}
}

func fixed2(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
