//go:build unix && !linux

package history

import "errors"

// onFullDisk needs mounts of its own, which this system does not give; the
// stand-in of TestGrowthFails has to do here.
func onFullDisk() error { return errors.ErrUnsupported }
