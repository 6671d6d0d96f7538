package history

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Merge writes one file, dst, that holds the streams of the client files src,
// in their order. What the sources hold is copied as it is, damage included,
// and never repaired; only the zeros after the last record of a stream that
// was not sealed are left out, and counted. The sources stay.
//
// dst appears whole or not at all, and replaces a file of that name. The
// writers of src must have ended. A full disk is errors.Is ENOSPC.
func Merge(dst string, src ...string) error {
	if len(src) == 0 {
		return fmt.Errorf("history: merge into %s: no client files given", dst)
	}
	err := writeWhole(dst, func(w io.Writer) error {
		for i, path := range src {
			if err := mergeOne(w, path, uint32(i), uint32(len(src))); err != nil {
				return fmt.Errorf("stream %s: %w", path, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("history: merge into %s: %w", dst, err)
	}
	return nil
}

func mergeOne(w io.Writer, path string, index, total uint32) error {
	f, st, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read: nothing to lose
	fr := frame{index: index, total: total, original: st.Size()}
	if fr.stored, err = usedBytes(f, st.Size()); err != nil {
		return err
	}
	var p [frameSize]byte
	n, err := f.ReadAt(p[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, merged := parseFrame(p[:n]); merged {
		return errors.New("is a merged file already: give the client files themselves")
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, fr.stored)); err != nil {
		return err
	}
	fr.content = sum.Sum32()
	fr.put(p[:])
	if _, err := w.Write(p[:]); err != nil {
		return err
	}
	n64, err := io.Copy(w, io.NewSectionReader(f, 0, fr.stored))
	if err == nil && n64 != fr.stored {
		err = errors.New("changed while it was read: its writer must end first")
	}
	return err
}

// usedBytes returns where the last record of a stream ends: the last byte that
// is not zero, rounded up to a whole slot.
func usedBytes(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, len(zeros))
	end := size
	for end > 0 {
		n := min(end, int64(len(buf)))
		p := buf[:n]
		if _, err := f.ReadAt(p, end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if !isZero(p) {
			for p[len(p)-1] == 0 {
				p = p[:len(p)-1]
			}
			end += int64(len(p)) - n
			break
		}
		end -= n
	}
	if end <= headerSize {
		return min(size, headerSize), nil
	}
	slots := (end - headerSize + slotSize - 1) / slotSize
	return min(size, headerSize+slots*slotSize), nil
}
