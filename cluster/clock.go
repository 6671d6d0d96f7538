package cluster

// serverEnv is the environment that a node is started with; nil is our own.
func (c *Cluster) serverEnv(_ *Node, env []string) []string { return env }
