package scenario

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The kinds of a Dist.
const (
	DistConstant    = "constant"
	DistUniform     = "uniform"
	DistExponential = "exponential"
)

// longest bounds every time of a specification, so that sums of a few of them
// cannot overflow.
const longest = 1000 * time.Hour

// parseTime reads a time that is not negative. Its errors say more than those of
// time.ParseDuration: the most common one is a missing unit.
func parseTime(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && s == "":
		return 0, fmt.Errorf(`empty where a time such as "1.5s" or "20ms" is expected`)
	case err != nil:
		if _, numeric := strconv.ParseFloat(s, 64); numeric == nil {
			return 0, fmt.Errorf("%q has no unit; write %sms or %ss, for example", s, s, s)
		}
		return 0, fmt.Errorf(`%q is not a time; write it like "1.5s", "20ms" or "250us"`, s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative; times start at 0s", s)
	case d > longest:
		return 0, fmt.Errorf("%q is longer than the longest time allowed, %s", s, longest)
	}
	return d, nil
}

// ParseDuration reads a time such as "1.5s". It rejects negative ones.
func ParseDuration(s string) (Duration, error) {
	d, err := parseTime(s)
	return Duration(d), err
}

// ParseSigned reads a time that may be negative, such as "-1.5s".
func ParseSigned(s string) (Duration, error) {
	number, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	t, err := parseTime(number)
	if negative {
		t = -t
	}
	return Duration(t), err
}

// String writes d as Go does: "1.5s".
func (d Duration) String() string { return time.Duration(d).String() }

// Set reads s; with Type it makes *Duration a flag's value.
func (d *Duration) Set(s string) (err error) {
	*d, err = ParseDuration(s)
	return err
}

// Type names the value in a flag's help.
func (d *Duration) Type() string { return "duration" }

// UnmarshalText reads "1.5s".
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// MarshalYAML writes "1.5s".
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// MarshalJSON writes integer nanoseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(d), 10), nil
}

// UnmarshalJSON reads integer nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return fmt.Errorf("read a duration: %s is not a whole number of nanoseconds", data)
	}
	*d = Duration(n)
	return nil
}

// ParseDist reads "1ms", "uniform(1ms,3ms)" or "exponential(2ms)".
func ParseDist(s string) (Dist, error) {
	s = strings.TrimSpace(s)
	kind, rest, call := strings.Cut(s, "(")
	if !call {
		a, err := parseTime(s)
		if err != nil {
			return Dist{}, err
		}
		return Dist{Kind: DistConstant, A: a}, nil
	}
	const forms = `write "1ms", "uniform(1ms,3ms)" or "exponential(2ms)"`
	inner, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return Dist{}, fmt.Errorf("%q lacks its closing parenthesis; %s", s, forms)
	}
	var times []time.Duration
	for _, part := range strings.Split(inner, ",") {
		t, err := parseTime(part)
		if err != nil {
			return Dist{}, err
		}
		times = append(times, t)
	}
	kind = strings.TrimSpace(kind)
	switch {
	case kind == DistConstant && len(times) == 1:
		return Dist{Kind: DistConstant, A: times[0]}, nil
	case kind == DistExponential && len(times) == 1:
		return Dist{Kind: DistExponential, A: times[0]}, nil
	case kind == DistUniform && len(times) == 2:
		if times[0] > times[1] {
			return Dist{}, fmt.Errorf("%q ends before it begins; write the shorter time first", s)
		}
		return Dist{Kind: DistUniform, A: times[0], B: times[1]}, nil
	}
	return Dist{}, fmt.Errorf("%q is not a distribution of times; %s", s, forms)
}

// Constant is the distribution that is always d.
func Constant(d time.Duration) Dist { return Dist{Kind: DistConstant, A: d} }

// IsZero reports whether every sample is zero.
func (d Dist) IsZero() bool { return d.A == 0 && d.B == 0 }

// Mean is the expected time.
func (d Dist) Mean() time.Duration {
	if d.Kind == DistUniform {
		return d.A + (d.B-d.A)/2
	}
	return d.A
}

// Sample draws a time. An exponential one is limited to twenty times its mean,
// which one draw in half a billion would exceed, so that no draw outlasts a run.
func (d Dist) Sample(rng *rand.Rand) time.Duration {
	switch d.Kind {
	case DistUniform:
		if d.B <= d.A {
			return d.A
		}
		return d.A + time.Duration(rng.Int64N(int64(d.B-d.A)+1))
	case DistExponential:
		return time.Duration(min(rng.ExpFloat64(), 20) * float64(d.A))
	default:
		return d.A
	}
}

// String is what ParseDist reads.
func (d Dist) String() string {
	switch d.Kind {
	case DistUniform:
		return fmt.Sprintf("uniform(%s,%s)", d.A, d.B)
	case DistExponential:
		return fmt.Sprintf("exponential(%s)", d.A)
	default:
		return d.A.String()
	}
}

// Type names the value in a flag's help.
func (d *Dist) Type() string { return "times" }

// MarshalText writes what ParseDist reads.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Dist) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDist(string(text))
	return err
}

// ParsePoll reads "5ms..15ms", or "10ms" for a constant interval. An interval
// of zero is rejected: it is a busy loop that measures the client's processor.
func ParsePoll(s string) (Poll, error) {
	low, high, ranged := strings.Cut(strings.TrimSpace(s), "..")
	if !ranged {
		high = low
	}
	var p Poll
	var err error
	if p.Min, err = parseTime(low); err != nil {
		return Poll{}, err
	}
	if p.Max, err = parseTime(high); err != nil {
		return Poll{}, err
	}
	switch {
	case p.Min > p.Max:
		return Poll{}, fmt.Errorf("%q ends before it begins; write the shorter time first", s)
	case p.Min == 0:
		return Poll{}, fmt.Errorf(`%q allows an interval of zero, which is a busy loop; write "1ms..3ms", for example`, s)
	}
	return p, nil
}

// String is what ParsePoll reads.
func (p Poll) String() string {
	if p.Min == p.Max {
		return p.Min.String()
	}
	return p.Min.String() + ".." + p.Max.String()
}

// Type names the value in a flag's help.
func (p *Poll) Type() string { return "from..to" }

// MarshalText writes what ParsePoll reads.
func (p Poll) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads it.
func (p *Poll) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePoll(string(text))
	return err
}
