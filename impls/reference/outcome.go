package reference

import (
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// phase is how far a call had come when it failed.
type phase int

const (
	notSent phase = iota // no byte of the call was handed to the connection
	sent                 // some may have been
)

// outcome names what a call that failed came to. The server refuses nothing by
// an error (busy and gone are answers), so only the phase matters: the table
// has two lines, and every error of the second is a doubt.
func outcome(err error, p phase) error {
	switch {
	case err == nil:
		return nil
	case p == notSent:
		return fmt.Errorf("%w: %w", impls.ErrFailed, err)
	default:
		return fmt.Errorf("%w: %w", impls.ErrUnknown, err)
	}
}
