package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead: reading any file neither panics nor returns impossible calls; and
// merging it does not change the readable calls.
func FuzzRead(f *testing.F) {
	path, _ := small(f, 4)
	f.Add(load(f, path))
	w, stream := create(f, f.TempDir(), Options{Client: 1, Clock: NewClock()})
	pour(f, w, 9, 6)
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(load(f, stream))
	f.Add(load(f, path)[frameSize+headerSize:])
	f.Add([]byte(frameMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "history")
		write(t, file, data)
		h, err := Read(file)
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		invariants(t, h)
		if err == nil && len(h.Calls) == 0 {
			t.Fatal("no call and no error")
		}
		merged := filepath.Join(dir, "merged")
		if err := Merge(merged, file); err != nil {
			if _, err := os.Stat(merged); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("a failed merge left a file: %v", err)
			}
			return // the data was a merged file
		}
		again, err := Read(merged)
		if err == nil {
			invariants(t, again)
		}
		if !bytes.HasPrefix(data, []byte(streamMagic)) {
			return // it may be the rest of a merged file, with streams within
		}
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		sameCalls(t, again.Calls, h.Calls)
		if (len(again.Damage) == 0) != (len(h.Damage) == 0) {
			t.Fatalf("damage %v, merged %v", h.Damage, again.Damage)
		}
	})
}

// FuzzResealed is FuzzRead behind the checksums: it makes them right wherever
// the data could have one, so that the reader meets impossible values in
// records that look sound.
func FuzzResealed(f *testing.F) {
	path, _ := small(f, 4)
	f.Add(load(f, path))
	f.Add(load(f, path)[frameSize:])
	f.Fuzz(func(t *testing.T, data []byte) {
		resealAll(data)
		h, err := readBytes(data, "resealed")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		invariants(t, h)
	})
}

// resealAll gives each frame, header and slot that stands where one may stand
// its right checksum.
func resealAll(data []byte) {
	le := binary.LittleEndian
	for len(data) >= headerSize {
		stored := len(data)
		if string(data[:8]) == frameMagic {
			stored = int(min(le.Uint64(data[32:]), uint64(len(data)-frameSize)))
			le.PutUint32(data[40:], crc32.Checksum(data[frameSize:frameSize+stored], castagnoli))
			le.PutUint32(data[frameSize-4:], checksum(0, data[:frameSize-4]))
			data = data[frameSize:]
		}
		stream := data[:stored]
		data = data[stored:]
		if len(stream) < headerSize {
			continue
		}
		le.PutUint32(stream[headerSize-4:], checksum(0, stream[:headerSize-4]))
		for s := stream[headerSize:]; len(s) >= slotSize; s = s[slotSize:] {
			if marked(s) {
				crc := checksum(0, s[:invokeCRC])
				le.PutUint32(s[invokeCRC:], crc)
				if le.Uint16(s[returnAt+2:]) == returnMark {
					le.PutUint32(s[returnCRC:], checksum(crc, s[returnAt:returnCRC]))
				}
			}
		}
	}
}
