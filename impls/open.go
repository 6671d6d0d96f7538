package impls

import (
	"context"
	"errors"
	"net"
)

// startTries is how often a request that times out is made while servers and
// clients start: on a busy machine it may take longer then than any may later.
const startTries = 3

// OpenPatiently opens a client, and once or twice more if its requests time out.
func OpenPatiently(ctx context.Context, r Recipe, cfg Config) (c Client, err error) {
	err = patiently(ctx, func() error {
		c, err = r.Open(ctx, cfg)
		return err
	})
	return c, err
}

// PreparePatiently prepares the servers, and once or twice more if its requests
// time out.
func PreparePatiently(ctx context.Context, r Recipe, cfg Config, keys []string) error {
	return patiently(ctx, func() error { return r.Prepare(ctx, cfg, keys) })
}

func patiently(ctx context.Context, do func() error) error {
	err := do()
	for try := 1; try < startTries && TimedOut(err) && ctx.Err() == nil; try++ {
		err = do()
	}
	return err
}

// TimedOut reports whether a request had no answer in time.
func TimedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
