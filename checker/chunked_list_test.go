package checker

import "testing"

func TestChunkedList(t *testing.T) {
	var p chunkedList[int32]
	if p.len() != 0 {
		t.Fatalf("an empty list has %d", p.len())
	}
	var first *int32
	for i := range int32(3*chunkSize + 5) {
		p.add(i)
		if p.len() != i+1 || *p.at(i) != i {
			t.Fatalf("%d elements, the last is %d, want %d", p.len(), *p.at(i), i)
		}
		if i == chunkSize {
			first = p.at(i)
		}
	}
	for i := range p.len() {
		if *p.at(i) != i {
			t.Fatalf("%d stands at %d", *p.at(i), i)
		}
	}
	if first != p.at(chunkSize) {
		t.Error("what had its place was moved")
	}
}
