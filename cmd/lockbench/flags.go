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

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// faultFlags are the flags that describe faults; each applies to all faults of
// --fault that have the parameter.
type faultFlags struct {
	names []string
	spec  scenario.FaultSpec // what is given to all of them
	pause scenario.Duration
}

func (f *faultFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.names, "fault", nil, "inject these comma-separated faults (see lockbench list faults)")
	fl.Var(&f.pause, "pause", "heal faults that pause after this time (default 2 TTL + 2s)")
	for _, flag := range scenario.FaultFlags(&f.spec) {
		fl.Var(flag, flag.Name, flag.Help)
	}
}

// schedule is the list of faults that the flags describe.
func (f *faultFlags) schedule(given func(string) bool) ([]scenario.FaultSpec, error) {
	if len(f.names) == 0 {
		for _, name := range []string{"pause", "fault-at", "fault-for", "by", "step"} {
			if given(name) {
				return nil, fmt.Errorf("--%s needs --fault too (see lockbench list faults)", name)
			}
		}
		return nil, nil
	}
	var list []scenario.FaultSpec
	paused, measured := false, false
	for _, name := range f.names {
		spec := f.spec
		spec.Kind = name
		about := scenario.ActionInfo{}
		if kind, ok := chaos.ParseKind(name); ok {
			about = kind.About()
		}
		if given("pause") && about.Freezes {
			paused, spec.For = true, f.pause
		}
		if given("by") && about.By.Name != "" {
			measured = true
		} else {
			spec.By = 0
		}
		list = append(list, spec)
	}
	switch {
	case given("pause") && !paused:
		return nil, errors.New("--pause needs a --fault that pauses, such as holder-pause; use --fault-for with any other fault")
	case given("by") && !measured:
		return nil, errors.New("--by needs a clock, delay or slow-disk fault")
	}
	return list, nil
}

// serverFlags reads BACKEND=PATH pairs.
func serverFlags(pairs []string) (map[string]string, error) {
	// With a misspelt variable another server would run without notice.
	const prefix = "LOCKBENCH_SERVER_"
	for _, v := range os.Environ() {
		name, path, _ := strings.Cut(v, "=")
		backend := strings.ToLower(strings.TrimPrefix(name, prefix))
		if strings.HasPrefix(name, prefix) && path != "" && !slices.Contains(cluster.Backends(), backend) {
			return nil, usage(fmt.Errorf("%s: no backend %q; choose %s", name, backend, strings.Join(cluster.Backends(), ", ")))
		}
	}
	binaries, err := backendFlags("server", "PATH", pairs)
	for backend, path := range binaries {
		if _, err := os.Stat(path); err != nil {
			return nil, usage(fmt.Errorf("--server %s=%s: %w; give the path of the server's program", backend, path, err))
		}
	}
	return binaries, err
}

// backendFlags reads the values of a flag, BACKEND=VALUE.
func backendFlags(flag, value string, pairs []string) (map[string]string, error) {
	values := map[string]string{}
	for _, p := range pairs {
		backend, v, ok := strings.Cut(p, "=")
		switch {
		case !ok || v == "":
			return nil, usage(fmt.Errorf("--%s %s: want BACKEND=%s", flag, p, value))
		case !slices.Contains(cluster.Backends(), backend):
			return nil, usage(fmt.Errorf("--%s %s: no backend %q; choose %s", flag, p, backend, strings.Join(cluster.Backends(), ", ")))
		}
		values[backend] = v
	}
	return values, nil
}

// flagError replaces the standard library's messages, which name its functions.
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
