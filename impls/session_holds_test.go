package impls_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// recorder is a Steps and a Renewals that counts.
type recorder struct {
	renewing int
	renewed  map[impls.Attempt]string
	sent     time.Time
	err      error
}

func (t *recorder) Reach(_ context.Context, s impls.Step) {
	if s == impls.StepRenewing {
		t.renewing++
	}
}

func (t *recorder) Renewed(key string, a impls.Attempt, sent time.Time, err error) {
	if t.renewed == nil {
		t.renewed = map[impls.Attempt]string{}
	}
	t.renewed[a], t.sent, t.err = key, sent, err
}

// TestSessionHolds: a renewal is reported once for each hold that depends on it, and not at
// all where none does.
func TestSessionHolds(t *testing.T) {
	var kept impls.SessionHolds
	one, other := impls.Attempt{1}, impls.Attempt{2}
	lost := errors.Join(impls.ErrLost)
	for _, c := range []struct {
		change func()
		want   map[impls.Attempt]string
		err    error
	}{
		{func() {}, nil, nil},
		{func() { kept.Add("a", one) }, map[impls.Attempt]string{one: "a"}, nil},
		{func() { kept.Add("b", other) }, map[impls.Attempt]string{one: "a", other: "b"}, impls.ErrUnknown},
		{func() { kept.Drop(one); kept.Drop(one) }, map[impls.Attempt]string{other: "b"}, lost},
		{func() { kept.Drop(other) }, nil, nil},
	} {
		c.change()
		var got recorder
		cfg := impls.Config{Steps: &got, Renewals: &got}
		sent := time.Now()
		kept.Renewing(t.Context(), &cfg)
		kept.Renewed(&cfg, sent, c.err)
		if !maps.Equal(got.renewed, c.want) || got.renewing != min(1, len(c.want)) || got.err != c.err {
			t.Errorf("reported for %v, announced %d times, %v; want %v", got.renewed, got.renewing, got.err, c.want)
		}
		if c.want != nil && got.sent != sent {
			t.Errorf("sent at %v, want %v", got.sent, sent)
		}
		kept.Renewed(new(impls.Config), sent, c.err) // without a receiver
	}
}

// TestFencedOn: a token is sound where the recipe does not say otherwise.
func TestFencedOn(t *testing.T) {
	for _, c := range []struct {
		info impls.Info
		want bool
	}{
		{impls.Info{}, false},
		{impls.Info{Fencing: true}, true},
		{impls.Info{Fencing: true, Unfenced: []string{"single"}}, true},
		{impls.Info{Fencing: true, Unfenced: []string{"single", "replicated"}}, false},
		{impls.Info{Unfenced: []string{"single"}}, false},
	} {
		if got := c.info.FencedOn("replicated"); got != c.want {
			t.Errorf("%+v: fenced %t", c.info, got)
		}
	}
}
