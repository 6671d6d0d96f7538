package cluster

// Watchers are the servers without data.
func (c *Cluster) Watchers() []*Node { return c.watchers }
