package redis

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

func TestTokenCheckTTL(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{
		time.Millisecond: true, 1500 * time.Millisecond: true, 10 * time.Second: true,
		0: false, -time.Second: false, 999 * time.Microsecond: false, time.Second + time.Microsecond: false,
	} {
		if err := (token{}).CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
			t.Errorf("CheckTTL(%s) = %v", ttl, err)
		}
	}
}
