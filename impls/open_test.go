package impls_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// slowStart is a recipe whose first requests time out.
type slowStart struct {
	impls.Recipe
	errs  []error
	opens int
}

func (s *slowStart) Open(context.Context, impls.Config) (impls.Client, error) {
	s.opens++
	return nil, s.errs[min(s.opens, len(s.errs))-1]
}

func (s *slowStart) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	_, err := s.Open(ctx, cfg)
	return err
}

func TestServersThatStartGetTime(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		errs  []error
		opens int
		err   error
	}{
		{[]error{nil}, 1, nil},
		{[]error{context.DeadlineExceeded, os.ErrDeadlineExceeded, nil}, 3, nil},
		{[]error{os.ErrDeadlineExceeded}, 3, os.ErrDeadlineExceeded},
		{[]error{refused}, 1, refused},
	} {
		s := &slowStart{errs: c.errs}
		if _, err := impls.OpenPatiently(t.Context(), s, impls.Config{}); s.opens != c.opens || !errors.Is(err, c.err) {
			t.Errorf("%v: opened %d times, %v", c.errs, s.opens, err)
		}
		s = &slowStart{errs: c.errs}
		if err := impls.PreparePatiently(t.Context(), s, impls.Config{}, nil); s.opens != c.opens || !errors.Is(err, c.err) {
			t.Errorf("%v: prepared %d times, %v", c.errs, s.opens, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &slowStart{errs: []error{context.DeadlineExceeded}}
	if _, err := impls.OpenPatiently(ctx, s, impls.Config{}); s.opens != 1 || err == nil {
		t.Errorf("opened %d times though called off, %v", s.opens, err)
	}
}
