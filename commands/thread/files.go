package thread

import (
	"encoding/hex"

	"github.com/skein-threads/skein/events"
)

// maxFiles bounds the files and directories of a thread. Its state, which holds a few hundred
// bytes for each, must stay small.
const maxFiles = 100_000

// fileState is a path of the thread's files. The root has one if it is not empty.
type fileState struct {
	Dir    bool        `json:"dir,omitzero"`
	Held   int64       `json:"held,omitzero"`   // the number of entries of a directory
	Digest []byte      `json:"digest,omitzero"` // of a file's content; nil for an external one
	Since  events.Time `json:"since,omitzero"`  // when it was created
	gone   bool        // in a layer: it was deleted
}

// file returns what is at a path. The root always exists.
func (s *State) file(path string) (fileState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.files[path]; ok && !v.gone {
			return v, true
		} else if ok {
			break
		}
	}
	root := path == events.FileRoot
	return fileState{Dir: root}, root
}

// putFile sets what is at a path. A new path is counted in its directory.
func (s *State) putFile(path string, v fileState) {
	_, had := s.file(path)
	s.setFile(path, v)
	if !had {
		s.NumFiles++
		s.countFile(path, 1)
	}
}

// dropFile removes a path.
func (s *State) dropFile(path string) {
	if _, had := s.file(path); !had {
		return
	}
	s.setFile(path, fileState{gone: true})
	s.NumFiles--
	s.countFile(path, -1)
}

func (s *State) countFile(path string, n int64) {
	dir, _ := events.SplitPath(path)
	d, _ := s.file(dir)
	d.Dir = true
	d.Held += n
	d.gone = dir == events.FileRoot && d.Held == 0
	s.setFile(dir, d)
}

// setFile sets the entry itself. In a layer, an entry that is gone hides that of the state
// below.
func (s *State) setFile(path string, v fileState) {
	if v.gone && s.parent == nil {
		unset(s, s.files, path)
		return
	}
	if s.files == nil {
		s.files = map[string]fileState{}
	}
	set(s, s.files, path, v)
}

// foldFile applies an event of the thread's files, and ignores others.
func (s *State) foldFile(e *events.Event) {
	switch d := e.Data.(type) {
	case events.FileWritten:
		f := fileState{Since: e.Time}
		f.Digest, _ = hex.DecodeString(d.Digest)
		if d.Since != 0 {
			f.Since = events.Time(d.Since)
		}
		s.putFile(d.Path, f)
	case events.DirectoryCreated:
		s.putFile(d.Path, fileState{Dir: true, Since: e.Time})
	case events.FileDeleted:
		s.dropFile(d.Path)
	case events.DirectoryRemoved:
		s.dropFile(d.Path)
	}
}
