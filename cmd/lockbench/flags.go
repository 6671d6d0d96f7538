package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// settings are the flags that describe the load, if they were given.
func (f runFlags) settings(cmd *cobra.Command) (scenario.Settings, error) {
	var s scenario.Settings
	given := cmd.Flags().Changed
	var errs []error
	if given("clients") {
		s.Clients = f.clients
	}
	set(&s.Workers, f.workers, given("workers"))
	set(&s.Repeat, f.repeat, given("repeat"))
	set(&s.TTL, f.ttl, given("ttl"))
	set(&s.Duration, f.duration, given("duration"))
	set(&s.Warmup, f.warmup, given("warmup"))
	set(&s.Timeout, f.timeout, given("timeout"))
	if given("topology") {
		s.Topology = f.topology
	}
	s.Environment = f.env
	if given("poll") {
		p, err := scenario.ParsePoll(f.poll)
		errs = append(errs, inFlag("poll", err))
		s.Poll = &p
	}
	if given("threshold") {
		s.Expect = &scenario.Expect{Thresholds: f.threshold}
	}
	s.Wire = f.wire
	var err error
	s.Faults, err = f.schedule(given)
	errs = append(errs, err)
	w := scenario.Workload{Kind: f.workload, Distribution: f.dist, Arrival: f.arrival, Guard: f.guard}
	load := slices.ContainsFunc([]string{"workload", "distribution", "arrival", "guard", "keys", "zipf", "rate", "max-in-flight", "acquire-limit", "watch-lease", "hold", "think", "readers", "depth", "batch", "connections"}, given)
	set(&w.Keys, f.keys, given("keys"))
	set(&w.ZipfS, f.zipf, given("zipf"))
	set(&w.Rate, f.rate, given("rate"))
	set(&w.MaxInFlight, f.inFlight, given("max-in-flight"))
	set(&w.AcquireLimit, f.acquire, given("acquire-limit"))
	set(&w.WatchLease, f.watch, given("watch-lease"))
	set(&w.Readers, f.readers, given("readers"))
	set(&w.Depth, f.depth, given("depth"))
	set(&w.Batch, f.batch, given("batch"))
	set(&w.Connections, f.pool, given("connections"))
	for name, d := range map[string]struct {
		text string
		to   **scenario.Dist
	}{"hold": {f.hold, &w.Hold}, "think": {f.think, &w.Think}} {
		if given(name) {
			v, err := scenario.ParseDist(d.text)
			errs = append(errs, inFlag(name, err))
			*d.to = &v
		}
	}
	if load {
		s.Workload = &w
	}
	return s, usage(errors.Join(errs...))
}

// schedule is the faults that the flags ask for.
func (f runFlags) schedule(given func(string) bool) ([]scenario.FaultSpec, error) {
	if len(f.faults) == 0 {
		for _, name := range []string{"pause", "fault-at", "fault-for", "by", "step"} {
			if given(name) {
				return nil, fmt.Errorf("--%s needs --fault too: it says more of a fault (see lockbench list faults)", name)
			}
		}
		return nil, nil
	}
	var by scenario.Duration
	if given("by") {
		var err error
		if by, err = scenario.ParseSigned(f.by); err != nil {
			return nil, inFlag("by", err)
		}
	}
	var list []scenario.FaultSpec
	paused, measured := false, false
	for _, name := range f.faults {
		spec := scenario.FaultSpec{Kind: name, Step: f.step}
		kind, _ := scenario.ParseFaultKind(name)
		pauses := kind.Action == scenario.ActPause
		measures := slices.Contains([]string{scenario.ActClock, scenario.ActDelay, scenario.ActSlowDisk}, kind.Action)
		paused, measured = paused || pauses, measured || measures
		set(&spec.At, f.faultAt, given("fault-at"))
		set(&spec.For, f.faultFor, given("fault-for"))
		set(&spec.For, f.pauseFor, given("pause") && pauses)
		set(&spec.By, by, given("by") && measures)
		list = append(list, spec)
	}
	switch {
	case given("pause") && !paused:
		return nil, errors.New("--pause needs a --fault that pauses, such as holder-pause; --fault-for says how long any fault lasts")
	case given("by") && !measured:
		return nil, errors.New("--by needs a --fault that has a measure: a clock, a delay or a slow-disk")
	}
	return list, nil
}

func set[T any](to **T, v T, given bool) {
	if given {
		*to = &v
	}
}

func inFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", name, err)
}

// serverFlags reads BACKEND=PATH pairs.
func serverFlags(pairs []string) (map[string]string, error) {
	// A misspelt variable would quietly run another server.
	const prefix = "LOCKBENCH_SERVER_"
	for _, v := range os.Environ() {
		name, path, _ := strings.Cut(v, "=")
		backend := strings.ToLower(strings.TrimPrefix(name, prefix))
		if strings.HasPrefix(name, prefix) && path != "" && !slices.Contains(cluster.Backends(), backend) {
			return nil, usage(fmt.Errorf("%s: no backend %q; there are %s", name, backend, strings.Join(cluster.Backends(), ", ")))
		}
	}
	binaries := map[string]string{}
	for _, p := range pairs {
		backend, path, ok := strings.Cut(p, "=")
		switch {
		case !ok || path == "":
			return nil, usage(fmt.Errorf("--server %s: want BACKEND=PATH", p))
		case !slices.Contains(cluster.Backends(), backend):
			return nil, usage(fmt.Errorf("--server %s: no backend %q; there are %s", p, backend, strings.Join(cluster.Backends(), ", ")))
		}
		if _, err := os.Stat(path); err != nil {
			return nil, usage(fmt.Errorf("--server %s: %w; give the path of the server's program", p, err))
		}
		binaries[backend] = path
	}
	return binaries, nil
}

// flagError says what is wrong with a flag in our words: the standard
// library's name its functions.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &value) {
		flag := value.GetFlag()
		switch cause := value.Unwrap(); {
		case errors.As(cause, &number):
			want := "a number"
			if t := flag.Value.Type(); strings.HasPrefix(t, "uint") {
				want = "a whole number, 0 or more"
			} else if strings.HasPrefix(t, "int") {
				want = "a whole number"
			} else if t == "bool" {
				want = "true or false"
			}
			err = fmt.Errorf("--%s: %q is not %s", flag.Name, value.GetValue(), want)
		default:
			err = fmt.Errorf("--%s: %w", flag.Name, cause)
		}
	}
	return usage(fmt.Errorf("%w (see \"%s --help\")", err, cmd.CommandPath()))
}
