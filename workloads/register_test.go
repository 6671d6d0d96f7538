package workloads

import (
	"path/filepath"
	"sync"
	"testing"
)

func TestRegisterSemantics(t *testing.T) {
	type step struct {
		call registerCall
		want registerAnswer
	}
	read := func(fenced bool, token uint64) registerCall { return registerCall{fenced: fenced, token: token} }
	write := func(fenced bool, token, value uint64) registerCall {
		return registerCall{write: true, fenced: fenced, token: token, value: value}
	}
	for _, tt := range []struct {
		name  string
		steps []step
		final Final
	}{
		{"plain carries tokens and enforces nothing", []step{
			{read(false, 1), registerAnswer{highest: 1}},
			{read(false, 2), registerAnswer{highest: 2}},
			{write(false, 1, 7), registerAnswer{highest: 2, value: 7, stale: true}},
			{write(false, 2, 8), registerAnswer{highest: 2, value: 8}},
			{read(false, 1), registerAnswer{highest: 2, value: 8}},
		}, Final{Value: 8, Accepted: 2, Stale: 1, HighestToken: 2}},
		{"plain without tokens knows no stale write", []step{
			{write(false, 0, 1), registerAnswer{value: 1}},
			{write(false, 0, 1), registerAnswer{value: 1}},
		}, Final{Value: 1, Accepted: 2}},
		// A reads, B reads with a younger token, A writes: without reads that
		// raise the highest seen, B's write would undo A's unnoticed.
		{"fenced: a younger reader shuts out the older writer", []step{
			{read(true, 1), registerAnswer{highest: 1}},
			{read(true, 2), registerAnswer{highest: 2}},
			{write(true, 1, 1), registerAnswer{highest: 2, rejected: true}},
			{write(true, 2, 1), registerAnswer{highest: 2, value: 1}},
			{read(true, 1), registerAnswer{highest: 2, rejected: true}},
		}, Final{Fenced: true, Value: 1, Accepted: 1, Rejected: 2, HighestToken: 2}},
		{"fenced refuses calls without a token", []step{
			{read(true, 0), registerAnswer{rejected: true}},
			{write(true, 0, 9), registerAnswer{rejected: true}},
		}, Final{Fenced: true, Rejected: 2}},
		{"fenced lets one holder write again", []step{
			{write(true, 3, 1), registerAnswer{highest: 3, value: 1}},
			{write(true, 3, 2), registerAnswer{highest: 3, value: 2}},
		}, Final{Fenced: true, Value: 2, Accepted: 2, HighestToken: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := must[*Register](t)(ServeRegister(filepath.Join(t.TempDir(), "s")))
			defer r.Close()
			c := must[*registerClient](t)(openRegister(r.listener.Addr().String()))
			defer c.close()
			for i, s := range tt.steps {
				if got := must[registerAnswer](t)(c.do(s.call)); got != s.want {
					t.Errorf("step %d, %+v: got %+v, want %+v", i+1, s.call, got, s.want)
				}
			}
			if got := r.Finals(); len(got) != 1 || got[0] != tt.final {
				t.Errorf("final %+v, want %+v", got, tt.final)
			}
		})
	}
}

// The registers of different keys, and the two of one key, know nothing of one
// another.
func TestRegistersAreApart(t *testing.T) {
	r := must[*Register](t)(ServeRegister(filepath.Join(t.TempDir(), "s")))
	var wg sync.WaitGroup
	for key := range uint32(4) {
		for _, fenced := range []bool{false, true} {
			wg.Go(func() {
				c, err := openRegister(r.listener.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.close()
				for i := range uint64(100) {
					if a, err := c.do(registerCall{write: true, fenced: fenced, key: key, token: i + 1, value: i + 1}); err != nil || a.rejected || a.stale {
						t.Errorf("key %d: %+v, %v", key, a, err)
					}
				}
			})
		}
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	finals := r.Finals()
	if len(finals) != 8 {
		t.Fatalf("%d registers, want 8", len(finals))
	}
	for i, f := range finals {
		if want := (Final{Key: uint32(i / 2), Fenced: i%2 == 1, Value: 100, Accepted: 100, HighestToken: 100}); f != want {
			t.Errorf("got %+v, want %+v", f, want)
		}
	}
}

func TestRegisterCloseCutsItsClients(t *testing.T) {
	r := must[*Register](t)(ServeRegister(filepath.Join(t.TempDir(), "s")))
	c := must[*registerClient](t)(openRegister(r.listener.Addr().String()))
	defer c.close()
	must[registerAnswer](t)(c.do(registerCall{}))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.do(registerCall{}); err == nil {
		t.Error("a closed register answered")
	}
}
