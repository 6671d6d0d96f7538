package impls_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

func TestUniformStaysWithinItsBounds(t *testing.T) {
	const low, high = 5 * time.Millisecond, 15 * time.Millisecond
	w := impls.NewUniform(low, high, 1)
	var sum time.Duration
	const n = 20000
	for range n {
		d := w.Next()
		if d < low || d > high {
			t.Fatalf("wait of %v, want one of %v to %v", d, low, high)
		}
		sum += d
	}
	if mean := sum / n; mean < 9900*time.Microsecond || mean > 10100*time.Microsecond {
		t.Errorf("mean wait %v, want about 10ms", mean)
	}
}

func TestUniformIsSeeded(t *testing.T) {
	a, b, c := impls.NewUniform(0, time.Hour, 3), impls.NewUniform(0, time.Hour, 3), impls.NewUniform(0, time.Hour, 4)
	differ := false
	for range 100 {
		x := a.Next()
		if y := b.Next(); x != y {
			t.Fatalf("the same seed gives %v and %v", x, y)
		}
		differ = differ || x != c.Next()
	}
	if !differ {
		t.Error("another seed gives the same waits")
	}
}

func TestUniformEdges(t *testing.T) {
	for _, c := range []struct {
		min, max time.Duration
		want     string
	}{
		{5 * time.Millisecond, 15 * time.Millisecond, "5ms..15ms"},
		{50 * time.Millisecond, 50 * time.Millisecond, "50ms"},
		{15 * time.Millisecond, 5 * time.Millisecond, "5ms..15ms"},
		{-time.Second, time.Millisecond, "0s..1ms"},
		{-2 * time.Second, -time.Second, "0s"},
	} {
		w := impls.NewUniform(c.min, c.max, 1)
		if w.String() != c.want {
			t.Errorf("%v to %v is %q, want %q", c.min, c.max, w, c.want)
		}
		if w.Next() < 0 {
			t.Errorf("%v to %v waits less than nothing", c.min, c.max)
		}
	}
}
