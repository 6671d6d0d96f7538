package workloads

import (
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// abilities is what a client can do besides, as far as the load asks for it.
type abilities struct {
	readWriter impls.ReadWriter
	batcher    impls.Batcher
}

// abilitiesFor finds what a kind of load needs of a client, or reports that the
// recipe lacks it, which is errors.ErrUnsupported.
func abilitiesFor(kind, recipe string, lock impls.Client) (a abilities, err error) {
	able, what := true, ""
	switch kind {
	case scenario.ReadWrite:
		a.readWriter, able = lock.(impls.ReadWriter)
		what = "take a lock for reading"
	case scenario.Batch:
		a.batcher, able = lock.(impls.Batcher)
		what = "take several keys at once"
	case scenario.Reentrant:
		_, able = lock.(impls.Reentrant)
		what = "let its holder lock again"
	}
	if !able {
		return a, fmt.Errorf("load %s: %s cannot %s: %w; lockbench list recipes shows which can", kind, recipe, what, errors.ErrUnsupported)
	}
	return a, nil
}
