package history

import (
	"fmt"
	"os"
)

// writeZeros is allocate for systems that cannot reserve space: it writes the
// zeros itself.
func writeZeros(f *os.File, from, size int64) error {
	for at := from; at < size; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
		if err != nil {
			return fmt.Errorf("write zeros: %w", err)
		}
		at += int64(n)
	}
	return nil
}
