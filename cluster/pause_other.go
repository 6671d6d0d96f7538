//go:build !linux

package cluster

import "github.com/lockbench/lockbench/supervise"

// atRest: nothing here tells of single threads; the system stops them together.
func atRest(p *supervise.Process) (bool, error) {
	state, err := p.State()
	return state == 'T', err
}
