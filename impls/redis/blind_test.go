package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// at is the Steps that do something when the client comes to a step.
type at struct {
	step impls.Step
	do   func()
}

func (a at) Reach(_ context.Context, s impls.Step) {
	if s == a.step {
		a.do()
	}
}

// stepping sets the client's steps.
func stepping(steps impls.Steps) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Steps = steps }
}

// lapse ends the time that the server gives key.
func (s served) lapse(t *testing.T, key string) {
	t.Helper()
	if ok, err := s.admin.PExpire(t.Context(), key, time.Millisecond).Result(); err != nil || !ok {
		t.Fatalf("expire %s: %t, %v", key, ok, err)
	}
}

// TestBlind: what the locks that store no owner can and cannot do.
func TestBlind(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"redis/setnx-expire", "redis/getset"} {
		blind := recipetest.Blind{
			Lapse: func(t *testing.T, key string) { s.remove(t, key) },
			Open: func(t *testing.T, dial impls.DialFunc) impls.Client {
				return s.open(t, id, func(cfg *impls.Config) {
					if dial != nil {
						cfg.Dial = dial
					}
				})
			},
		}
		t.Run(id+"/record", blind.Record)
		t.Run(id+"/doubt", blind.Doubt)
		for ttl, ok := range map[time.Duration]bool{0: false, 500 * time.Millisecond: false, 1500 * time.Millisecond: false, time.Second: true, time.Hour: true} {
			if err := recipe(t, id).CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
				t.Errorf("%s: CheckTTL(%s) = %v", id, ttl, err)
			}
		}
	}
}
