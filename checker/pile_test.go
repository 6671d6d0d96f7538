package checker

import "testing"

func TestPile(t *testing.T) {
	var p pile[int32]
	if p.len() != 0 {
		t.Fatalf("an empty pile has %d", p.len())
	}
	var first *int32
	for i := range int32(3*pileBlock + 5) {
		p.add(i)
		if p.len() != i+1 || *p.at(i) != i {
			t.Fatalf("%d elements, the last is %d, want %d", p.len(), *p.at(i), i)
		}
		if i == pileBlock {
			first = p.at(i)
		}
	}
	for i := range p.len() {
		if *p.at(i) != i {
			t.Fatalf("%d stands at %d", *p.at(i), i)
		}
	}
	if first != p.at(pileBlock) {
		t.Error("what had its place was moved")
	}
}
