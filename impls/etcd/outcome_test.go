package etcd

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestOutcomes(t *testing.T) {
	recipetest.Rules(t, rules(), recipetest.Themselves(
		rpctypes.ErrLeaseNotFound, rpctypes.ErrNoSpace, rpctypes.ErrTooManyRequests, rpctypes.ErrRequestTooLarge,
		rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey, rpctypes.ErrPermissionDenied,
		rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision, rpctypes.ErrNotCapable,
		rpctypes.ErrCorrupt,
		// Doubts: each may be followed by the request's effect.
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
		rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrNoLeader, rpctypes.ErrUnhealthy,
		status.Error(codes.Unavailable, "transport is closing"),
		status.Error(codes.Canceled, "cancelled"),
		status.Error(codes.DeadlineExceeded, "too late"),
		status.Error(codes.Internal, "what?"),
		status.Error(codes.Unknown, "what?"),
	))
	for err, want := range map[error]bool{rpctypes.ErrTimeout: true, rpctypes.ErrTimeoutDueToLeaderFail: true, rpctypes.ErrLeaderChanged: false} {
		if got := outcome(err, true); impls.TimedOut(got) != want || !errors.Is(got, impls.ErrUnknown) {
			t.Errorf("%v: timed out %t, want %t", got, impls.TimedOut(got), want)
		}
	}
	// Nothing was sent: then every error is definite, refusals included.
	for _, err := range []error{rpctypes.ErrTimeout, rpctypes.ErrNoSpace, status.Error(codes.Unavailable, "no server")} {
		if got := outcome(err, false); !errors.Is(got, impls.ErrFailed) || !errors.Is(got, err) {
			t.Errorf("%v before sending: %v", err, got)
		}
	}
}
