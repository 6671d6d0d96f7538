package netdrop

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	MainIfProbe()
	os.Exit(m.Run())
}

func TestAvailable(t *testing.T) {
	before, _ := os.Readlink(namespace)
	if err := Available(); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Readlink(namespace)
	if before != after {
		t.Errorf("was in %s, is in %s", before, after)
	}
}
