package claims

import "testing"

func TestClaimsAreValid(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 58 {
		t.Errorf("%d claims", len(all))
	}
}
