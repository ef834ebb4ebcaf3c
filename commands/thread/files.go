package thread

import (
	"encoding/hex"

	"github.com/skein-threads/skein/events"
)

// maxFiles is how many files and directories a thread may have: its state,
// which holds a few hundred bytes of each, must stay small.
const maxFiles = 100_000

// fileState is a path of the thread's files. The root has one when it holds
// something.
type fileState struct {
	Dir    bool        `json:"dir,omitzero"`
	Held   int64       `json:"held,omitzero"`   // what a directory holds
	Digest []byte      `json:"digest,omitzero"` // of a file's content; none of an external one
	Since  events.Time `json:"since,omitzero"`  // when it was made
	gone   bool        // of a layer: it is taken away
}

// file gives what a path holds. The root is always there.
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

// putFile sets what a path holds. A path that is new counts in its directory.
func (s *State) putFile(path string, v fileState) {
	_, had := s.file(path)
	s.setFile(path, v)
	if !had {
		s.NumFiles++
		s.countFile(path, 1)
	}
}

// dropFile takes a path away.
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

// setFile sets the entry itself. In a layer, one that is gone hides what the
// state below has.
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

// foldFile gives the state after an event of the thread's files. Others leave it
// as it was.
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
