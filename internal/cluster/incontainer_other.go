//go:build !linux

package cluster

import "errors"

// InContainer: containers run Linux.
func InContainer([]string) error { return errors.New("only for Linux") }
