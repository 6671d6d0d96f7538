package impls

import (
	"context"
	"errors"
	"net"
)

// openTries is how often OpenPatiently opens a client whose requests time out.
const openTries = 3

// OpenPatiently opens a client, and once or twice more if its requests time out:
// while servers and clients start on a busy machine, a request may take longer
// than any may later.
func OpenPatiently(ctx context.Context, r Recipe, cfg Config) (Client, error) {
	c, err := r.Open(ctx, cfg)
	for try := 1; try < openTries && TimedOut(err) && ctx.Err() == nil; try++ {
		c, err = r.Open(ctx, cfg)
	}
	return c, err
}

// TimedOut reports whether a request had no answer in time.
func TimedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
