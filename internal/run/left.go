package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockbench/lockbench/internal/external"
	"github.com/lockbench/lockbench/internal/supervise"
)

// leftPrefix begins the names of the files that say what a run has on external
// servers. They are beside the runs' folders, which do not outlive a kill -9.
const leftPrefix = "external-"

// place is where on external servers a run's clients work. Only a run with the
// same place can remove what a killed one left there.
type place struct {
	Backend   string
	Addresses []string
	Database  string
}

func placeOf(backend string, s *external.Servers) place {
	return place{Backend: backend, Addresses: slices.Sorted(slices.Values(s.Addresses)), Database: s.Account.Database}
}

func (p place) equal(q place) bool {
	return p.Backend == q.Backend && p.Database == q.Database && slices.Equal(p.Addresses, q.Addresses)
}

// leftRecord is the first line of such a file; the others are lists of names of
// locks.
type leftRecord struct {
	Run   string // its id
	Space string // what begins the names of all that it created
	Place place
}

// leftOver is what a killed run left.
type leftOver struct {
	leftRecord
	names []string
	path  string
}

func (r *runner) leftPath(key clusterKey) string {
	return filepath.Join(filepath.Dir(r.sup.Dir()), leftPrefix+r.sup.ID()+"-"+key.backend+"-"+key.topology)
}

// noteLeft writes down what the run will create on servers, before it does.
func (r *runner) noteLeft(key clusterKey, lines ...any) (err error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(r.leftPath(key), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("note what will be on external servers: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text.Bytes())
	return err
}

// leftOvers reads what killed runs left at a place. A file that cannot be read, or
// was cut by the kill, says nothing beyond its last whole line.
func leftOvers(folder string, p place) (all []leftOver) {
	paths, _ := filepath.Glob(filepath.Join(folder, leftPrefix+"*"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		l := leftOver{path: path}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, len(data)+1)
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &l.leftRecord) != nil || !l.Place.equal(p) {
			continue
		}
		if !supervise.Dead(filepath.Join(folder, l.Run)) {
			continue
		}
		for lines.Scan() {
			var names []string
			if json.Unmarshal(lines.Bytes(), &names) == nil {
				l.names = append(l.names, names...)
			}
		}
		all = append(all, l)
	}
	return all
}
