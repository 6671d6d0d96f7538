package reports

import (
	"os"
	"testing"
)

func TestX(t *testing.T) {
	d := os.Getenv("OUT")
	writeRun(t, d, quickDoc())
	if err := Write(d); err != nil {
		t.Fatal(err)
	}
}
