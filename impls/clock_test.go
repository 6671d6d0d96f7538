package impls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

func TestSystemClockSleepEndsWithContext(t *testing.T) {
	clock := impls.SystemClock()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := clock.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("sleep cut short: %v", err)
	}
	if err := clock.Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("sleep of nothing with a context that is over: %v", err)
	}
	start := clock.Now()
	if err := clock.Sleep(t.Context(), 2*time.Millisecond); err != nil {
		t.Errorf("sleep: %v", err)
	}
	if slept := clock.Now().Sub(start); slept < 2*time.Millisecond {
		t.Errorf("slept %v, want at least 2ms", slept)
	}
}

func TestSystemClockAfterFunc(t *testing.T) {
	clock := impls.SystemClock()
	called := make(chan struct{})
	clock.AfterFunc(0, func() { close(called) })
	<-called
	if stop := clock.AfterFunc(time.Hour, func() { t.Error("called though stopped") }); !stop() {
		t.Error("stop in time says that it came too late")
	}
}
