package etcd

import (
	"context"
	"errors"
	"io"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

func TestOutcomes(t *testing.T) {
	check := func(err error, sent bool, want history.Outcome) {
		t.Helper()
		got := outcome(err, sent)
		if o := impls.Outcome(history.KindAcquire, got); o != want {
			t.Errorf("%v (sent: %t) is %v, want %v", err, sent, o, want)
		}
		if !errors.Is(got, err) {
			t.Errorf("%v hides %v", got, err)
		}
	}
	for _, err := range refusals() {
		check(err, true, history.Failed)
	}
	// Each of these may be followed by the request's effect.
	doubts := []error{
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
		rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrNoLeader, rpctypes.ErrUnhealthy,
		status.Error(codes.Unavailable, "transport is closing"),
		status.Error(codes.Canceled, "cancelled"),
		status.Error(codes.DeadlineExceeded, "too late"),
		status.Error(codes.Internal, "what?"),
		status.Error(codes.Unknown, "what?"),
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF,
		errors.New("never heard of"),
	}
	for _, err := range doubts {
		check(err, true, history.Unknown)
		check(err, false, history.Failed)
	}
	if outcome(nil, true) != nil || outcome(nil, false) != nil {
		t.Error("success has an error")
	}
}
