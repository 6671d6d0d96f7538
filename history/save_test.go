package history

import (
	"path/filepath"
	"testing"
)

func TestSave(t *testing.T) {
	path, _ := small(t, 200)
	h := sound(t, path)
	saved := filepath.Join(t.TempDir(), "saved")
	if err := Save(saved, h); err != nil {
		t.Fatal(err)
	}
	same(t, sound(t, saved), h)

	h.Damage = []Damage{{What: "a bit"}}
	if Save(saved, h) == nil {
		t.Error("a damaged history was saved as if it were whole")
	}
	h.Damage = nil
	h.Calls = h.Calls[1:]
	if Save(saved, h) == nil {
		t.Error("a history that misses a call was saved as if it were whole")
	}
	same(t, sound(t, saved), sound(t, path))
}
