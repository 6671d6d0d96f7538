package checker

// pile is a list that grows without being moved. A slice that grows to millions
// of elements is copied several times over, in steps that hold up the garbage
// collector, and takes twice the memory meanwhile.
type pile[T any] struct {
	blocks [][]T // all of pileBlock elements but the last
}

const pileBlock = 1 << 14

func (p *pile[T]) add(x T) {
	n := len(p.blocks)
	switch {
	case n == 0:
		p.blocks = append(p.blocks, nil) // most are small
	case len(p.blocks[n-1]) == pileBlock:
		p.blocks = append(p.blocks, make([]T, 0, pileBlock))
	}
	last := &p.blocks[len(p.blocks)-1]
	*last = append(*last, x)
}

func (p *pile[T]) len() int32 {
	n := len(p.blocks)
	if n == 0 {
		return 0
	}
	return int32((n-1)*pileBlock + len(p.blocks[n-1]))
}

func (p *pile[T]) at(i int32) *T { return &p.blocks[i/pileBlock][i%pileBlock] }
