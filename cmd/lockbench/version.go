package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// buildVersion is what the build recorded about this program. The JSON form is
// the output of "lockbench version --format json".
type buildVersion struct {
	Version  string `json:"version"`            // of the module, "dev" if the build has none
	Revision string `json:"revision,omitempty"` // the commit
	Modified bool   `json:"modified"`           // the work tree differed from the commit
	Time     string `json:"time,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version reads the version of this program from its build information.
func version() buildVersion {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) buildVersion {
	v := buildVersion{Version: info.Main.Version, Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "dev"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Short is the version in a result document: the module version, and the
// commit where the version does not contain it.
func (v buildVersion) Short() string {
	revision := v.Revision[:min(12, len(v.Revision))]
	if revision == "" || strings.Contains(v.Version, revision) {
		return v.Version
	}
	if v.Modified {
		revision += "+changes"
	}
	return v.Version + " (" + revision + ")"
}

// String is what "lockbench version" and "lockbench --version" print.
func (v buildVersion) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockbench %s\n", v.Version)
	if v.Revision != "" {
		b.WriteString("commit    " + v.Revision)
		if v.Time != "" {
			b.WriteString(" of " + v.Time)
		}
		if v.Modified {
			b.WriteString(", with uncommitted changes")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "built by  %s for %s", v.Go, v.Platform)
	return b.String()
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the Go version", Args: argCount(cobra.NoArgs, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if format == "json" {
				return a.printJSON(version())
			}
			_, err := fmt.Fprintln(a.stdout, version())
			return err
		},
	}
	addFormat(cmd, &format, "text", "json")
	return cmd
}
