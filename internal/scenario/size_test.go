package scenario

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"500MB": 500e6, "2GiB": 2 << 30, "1.5 KB": 1500, "7": 7, "12B": 12} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q is read as %d, %v; want %d", text, s, err, want)
		}
	}
	for s, want := range map[Size]string{0: "", 999: "999B", 1500: "1.5KB", 2 << 30: "2.15GB"} {
		if s.String() != want {
			t.Errorf("%d is written as %q, want %q", int64(s), s, want)
		}
	}
	for _, text := range []string{"", "0", "-1GB", "lots", "1PB", "NaN", "9e30"} {
		if err := new(Size).Set(text); err == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
}
