package cluster

import (
	"context"

	"github.com/lockbench/lockbench/faultnet"
)

// CutLinks puts a rule on all links between the nodes of side and all other
// servers, those that watch them too, until LiftLinks with the same id. The
// links must run through proxies, see Spec.Links.
func (c *Cluster) CutLinks(ctx context.Context, id string, side []int, rule faultnet.Rule) (how string, err error) {
	return "", ErrUnsupported
}

// LiftLinks takes away what CutLinks put, and tells what it did.
func (c *Cluster) LiftLinks(ctx context.Context, id string) (faultnet.Effect, error) {
	return faultnet.Effect{}, nil
}
