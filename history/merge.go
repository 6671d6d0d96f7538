package history

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
)

// packAbove is the size, in bytes, above which Merge compresses a stream that is
// one file. Damage to a small stream then costs as little as it can.
const packAbove = 256 << 10

// Merge writes one file, dst, that holds the streams of the client files src,
// in their order; the parts of a stream become one stream. What the sources hold
// is copied as it is, damage included, and never repaired; only the zeros after
// the last record of a stream that was not sealed are left out, and counted.
// Long streams are compressed. The sources stay.
//
// dst appears whole or not at all, and replaces a file of that name. The
// writers of src must have ended; files that they had not named yet are left
// out. A full disk is errors.Is ENOSPC.
func Merge(dst string, src ...string) error {
	src = slices.DeleteFunc(slices.Clone(src), func(path string) bool { return strings.HasSuffix(path, newSuffix) })
	if len(src) == 0 {
		return fmt.Errorf("history: merge into %s: no client files given", dst)
	}
	m := merger{}
	err := writeWhole(dst, func(w *wholeFile) error {
		streams, err := streamFiles(src)
		if err != nil {
			return err
		}
		for i, files := range streams {
			if err := m.one(w, files, frame{index: uint32(i), total: uint32(len(streams))}); err != nil {
				return fmt.Errorf("stream %s: %w", files[0].path, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("history: merge into %s: %w", dst, err)
	}
	return nil
}

// streamFile is a file of a stream, with its header, if that is sound.
type streamFile struct {
	path  string
	head  header
	known bool
}

// isPart reports whether the file is one of several of its stream, or packed.
func (f *streamFile) isPart() bool {
	return f.known && (f.head.first > 0 || f.head.continued || f.head.packed)
}

// streamFiles groups files by their streams, in the order of the first of each.
func streamFiles(paths []string) ([][]streamFile, error) {
	var streams [][]streamFile
	parts := map[uint32]int{} // by client: the number of its stream
	for _, path := range paths {
		file, err := openStream(path)
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", path, err)
		}
		if !file.isPart() {
			streams = append(streams, []streamFile{file})
			continue
		}
		i, ok := parts[file.head.client]
		if !ok {
			i = len(streams)
			parts[file.head.client] = i
			streams = append(streams, nil)
		}
		streams[i] = append(streams[i], file)
	}
	for _, i := range parts {
		slices.SortFunc(streams[i], func(a, b streamFile) int { return cmp.Compare(a.head.first, b.head.first) })
	}
	return streams, nil
}

// openStream reads the header of a client's file.
func openStream(path string) (streamFile, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return streamFile{}, err
	}
	defer f.Close() // only read: nothing to lose
	var p [headerSize]byte
	n, err := f.ReadAt(p[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return streamFile{}, err
	}
	if _, merged := parseFrame(p[:n]); merged {
		return streamFile{}, errors.New("is a merged file already: give the client files themselves")
	}
	h, err := parseHeader(p[:n])
	return streamFile{path: path, head: h, known: err == nil}, nil
}

// merger copies streams. Its encoder is made when one has to be compressed.
type merger struct{ encoder *encoder }

func (m *merger) one(w *wholeFile, files []streamFile, fr frame) error {
	if len(files) > 1 || files[0].isPart() {
		return m.packed(w, files, fr)
	}
	f, st, err := openRegular(files[0].path)
	if err != nil {
		return err
	}
	defer f.Close() // only read: nothing to lose
	if fr.stored, err = usedBytes(f, st.Size()); err != nil {
		return err
	}
	// A stream that has lost its end, or has more than it should, is kept as it is
	// found.
	if h := files[0].head; files[0].known && fr.stored > packAbove && st.Size() >= h.allocated {
		return m.packed(w, files, fr)
	}
	fr.original = st.Size()
	return copyStream(w, f, fr)
}

// copyStream writes a stream as it is.
func copyStream(w io.Writer, f *os.File, fr frame) error {
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, fr.stored)); err != nil {
		return err
	}
	fr.content = sum.Sum32()
	var p [frameSize]byte
	fr.put(p[:])
	if _, err := w.Write(p[:]); err != nil {
		return err
	}
	n, err := io.Copy(w, io.NewSectionReader(f, 0, fr.stored))
	if err == nil && n != fr.stored {
		err = errChanged
	}
	return err
}

var errChanged = errors.New("changed while it was read: its writer must end first")

// packed writes the parts of a stream as one, compressed.
func (m *merger) packed(w *wholeFile, files []streamFile, fr frame) (err error) {
	if m.encoder == nil {
		if m.encoder, err = newEncoder(); err != nil {
			return err
		}
	}
	// What is not known yet is written over in the end.
	at := w.at
	if _, err := w.Write(zeros[:frameSize+headerSize]); err != nil {
		return err
	}
	h := files[len(files)-1].head
	h.first, h.packed, h.allocated = 0, true, headerSize
	// If a part is missing, the stream is shorter than its header declares.
	most := headerSize + h.count*slotSize
	for i := range files {
		size, err := m.part(w, &files[i])
		if err != nil {
			return err
		}
		h.allocated += size
	}
	h.allocated = max(h.allocated, most)
	fr.original, fr.stored = h.allocated, w.at-at-frameSize
	var p [frameSize + headerSize]byte
	h.put(p[frameSize:])
	fr.put(p[:frameSize])
	return w.replace(p[:], at)
}

// part writes the records of a part, and returns how many bytes they take
// uncompressed.
func (m *merger) part(w *wholeFile, p *streamFile) (int64, error) {
	f, st, err := openRegular(p.path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read: nothing to lose
	if p.head.packed {
		n, err := io.Copy(w, io.NewSectionReader(f, headerSize, st.Size()-headerSize))
		if err == nil && n != st.Size()-headerSize {
			err = errChanged
		}
		return p.head.allocated - headerSize, err
	}
	end, err := usedBytes(f, st.Size())
	if err != nil {
		return 0, err
	}
	// A part that is shorter than it should be is missed by the reader.
	size := end - headerSize
	if p.head.continued || p.head.sealed || st.Size() < p.head.allocated {
		size = p.head.allocated - headerSize
	}
	return size, m.encoder.write(w, f, headerSize, end-headerSize)
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
