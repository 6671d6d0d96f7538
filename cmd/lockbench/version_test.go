package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionReadsBuildInfo(t *testing.T) {
	const commit = "b60aba08f6a9e1d2c3b4a5968778695a4b3c2d1e"
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-01-31T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, test := range []struct {
		name, version, short string
		settings             []debug.BuildSetting
		text                 []string
	}{
		{"no version and no commit", "(devel)", "dev", nil, []string{"lockbench dev\n", "built by  go1.26 for "}},
		{"a commit alone", "", "dev (b60aba08f6a9+changes)", settings, []string{"lockbench dev\n", commit, "2026-01-31T12:00:00Z", "uncommitted changes"}},
		{"a release", "v1.2.3", "v1.2.3", nil, []string{"lockbench v1.2.3\n"}},
		{"a pseudo-version", "v0.0.0-20260131120000-b60aba08f6a9+dirty", "v0.0.0-20260131120000-b60aba08f6a9+dirty", settings, []string{commit}},
	} {
		v := versionOf(&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: test.version}, Settings: test.settings})
		if v.Short() != test.short {
			t.Errorf("%s: Short() is %q, want %q", test.name, v.Short(), test.short)
		}
		for _, part := range test.text {
			if !strings.Contains(v.String(), part) {
				t.Errorf("%s: String() lacks %q:\n%s", test.name, part, v)
			}
		}
	}
}

func TestVersionCommand(t *testing.T) {
	output := func(args ...string) (exitCode, string, string) {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	_, text, _ := output("version")
	if _, flag, _ := output("--version"); flag != text || !strings.HasPrefix(text, "lockbench ") {
		t.Errorf("version prints %q, --version %q", text, flag)
	}
	code, out, _ := output("version", "--format", "json")
	var v buildVersion
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || v != version() {
		t.Errorf("version --format json ends with %d and prints %s (%v)", code, out, err)
	}
	if code, _, stderr := output("version", "--format", "yaml"); code != exitUsage || !strings.Contains(stderr, "text or json") {
		t.Errorf("version --format yaml ends with %d: %s", code, stderr)
	}
}
