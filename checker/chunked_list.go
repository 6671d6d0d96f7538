package checker

// chunkedList is a list that grows without being copied. Growing a slice to
// millions of elements copies it several times, in steps that delay the garbage
// collector, and takes twice the memory meanwhile.
type chunkedList[T any] struct {
	blocks [][]T // all of length chunkSize but the last
}

const chunkSize = 1 << 14

func (p *chunkedList[T]) add(x T) {
	n := len(p.blocks)
	switch {
	case n == 0:
		p.blocks = append(p.blocks, nil) // most lists are small
	case len(p.blocks[n-1]) == chunkSize:
		p.blocks = append(p.blocks, make([]T, 0, chunkSize))
	}
	last := &p.blocks[len(p.blocks)-1]
	*last = append(*last, x)
}

func (p *chunkedList[T]) len() int32 {
	n := len(p.blocks)
	if n == 0 {
		return 0
	}
	return int32((n-1)*chunkSize + len(p.blocks[n-1]))
}

func (p *chunkedList[T]) at(i int32) *T { return &p.blocks[i/chunkSize][i%chunkSize] }
