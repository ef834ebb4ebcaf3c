package thread

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

func (m *decider) writeFile(d events.WriteFile) error {
	path, err := events.FilePath(d.Path)
	if err != nil {
		return err
	}
	was, there := m.state.file(path)
	if was.Dir {
		return occupied("directory", path, "is a directory; remove it before a file takes its place")
	}
	if err := expected(d.ExpectedDigest, was, there, path); err != nil {
		return err
	}
	written := events.FileWritten{Path: path, MimeType: d.MimeType, External: d.External, Metadata: d.Metadata}
	if there {
		written.Since = int64(was.Since)
	}
	if stored := d.Stored; stored != nil {
		if d.Size != nil && *d.Size != stored.Size {
			return events.Invalid("/size", "the content has %d bytes, not %d", stored.Size, *d.Size)
		}
		written.Digest, written.Size, written.Width, written.Height = stored.Digest, stored.Size, stored.Width, stored.Height
		if written.MimeType == "" {
			written.MimeType = stored.MimeType
		}
	} else {
		if d.External == "" {
			return events.Invalid("/content", "file.write needs content, or external; content of more than %d bytes goes by an upload", events.InlineFileBytes)
		}
		written.Size = number(d.Size)
	}
	if written.MimeType == "" {
		written.MimeType = "application/octet-stream"
	}
	if d.Width != nil {
		written.Width = number(d.Width)
	}
	if d.Height != nil {
		written.Height = number(d.Height)
	}
	if err := m.makeParents(path); err != nil {
		return err
	}
	if err := m.roomForFile(there); err != nil {
		return err
	}
	m.emit(events.FileWrittenType, m.command.ThreadID, "", written)
	return nil
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func (m *decider) deleteFile(d events.DeleteFile) error {
	path, err := events.FilePath(d.Path)
	if err != nil {
		return err
	}
	was, there := m.state.file(path)
	if was.Dir {
		return occupied("directory", path, "is a directory; directory.remove takes an empty one away")
	}
	if err := expected(d.ExpectedDigest, was, there, path); err != nil {
		return err
	}
	if there {
		m.emit(events.FileDeletedType, m.command.ThreadID, "", events.FileDeleted{Path: path})
	}
	return nil
}

func (m *decider) createDirectory(d events.CreateDirectory) error {
	path, err := events.FilePath(d.Path)
	if err != nil {
		return err
	}
	switch was, there := m.state.file(path); {
	case was.Dir:
		return nil
	case there:
		return occupied("file", path, "is a file; delete it before a directory takes its place")
	}
	if err := m.makeParents(path); err != nil {
		return err
	}
	return m.makeDirectory(path)
}

func (m *decider) removeDirectory(d events.RemoveDirectory) error {
	path, err := events.FilePath(d.Path)
	if err != nil {
		return err
	}
	if path == events.FileRoot {
		return events.Invalid("/path", "the root cannot be removed")
	}
	switch was, there := m.state.file(path); {
	case !there:
		return nil
	case !was.Dir:
		return occupied("file", path, "is a file; file.delete takes it away")
	case was.Held > 0:
		return occupied("directory", path, "is not empty: it holds "+strconv.FormatInt(was.Held, 10)+" entries; remove them first")
	}
	m.emit(events.DirectoryRemovedType, m.command.ThreadID, "", events.DirectoryRemoved{Path: path})
	return nil
}

// makeParents creates the missing directories above a path.
func (m *decider) makeParents(path string) error {
	var missing []string
	for dir, _ := events.SplitPath(path); dir != events.FileRoot; dir, _ = events.SplitPath(dir) {
		was, there := m.state.file(dir)
		if there && !was.Dir {
			return occupied("file", dir, "is a file, and no directory on the way to "+path)
		}
		if there {
			break
		}
		missing = append(missing, dir)
	}
	slices.Reverse(missing)
	for _, dir := range missing {
		if err := m.makeDirectory(dir); err != nil {
			return err
		}
	}
	return nil
}

func (m *decider) makeDirectory(path string) error {
	if err := m.roomForFile(false); err != nil {
		return err
	}
	m.emit(events.DirectoryCreatedType, m.command.ThreadID, "", events.DirectoryCreated{Path: path})
	return nil
}

func (m *decider) roomForFile(there bool) error {
	if !there && m.state.NumFiles >= maxFiles {
		return events.Errorf(events.PayloadTooLarge, "the thread has %d files and directories, and more are not allowed", maxFiles)
	}
	return nil
}

// occupied returns the refusal of a command that conflicts with the entry at path.
func occupied(entity, path, why string) error {
	e := events.Errorf(events.IllegalTransition, "%s %s", path, why)
	e.Details = &events.ErrorDetails{Entity: entity, ID: path}
	return e
}

// expected compares the digest of the content at path with the digest that the caller expects.
func expected(digest *string, was fileState, there bool, path string) error {
	if digest == nil {
		return nil
	}
	have := hex.EncodeToString(was.Digest)
	switch {
	case *digest == "" && there:
		return changed(path, "it holds a file")
	case *digest != "" && !there:
		return changed(path, "it holds nothing")
	case *digest != have:
		return changed(path, "it holds other content")
	}
	return nil
}

// changed returns the refusal for a path that another command has changed.
func changed(path, how string) error {
	e := events.Errorf(events.VersionConflict, "%s is not as expected: %s; read it again and retry", path, how)
	e.Details = &events.ErrorDetails{Entity: "file", ID: path}
	return e
}

// maxFiles bounds the files and directories of a thread. Its state, which holds a few hundred
// bytes for each, must stay small.
const maxFiles = 100_000

// fileState is an entry of the thread's files: a file or a directory. The root has an entry unless
// it is empty.
type fileState struct {
	Dir    bool        `json:"dir,omitzero"`
	Held   int64       `json:"held,omitzero"`   // the number of entries of a directory
	Digest []byte      `json:"digest,omitzero"` // of a file's content; nil for an external one
	Since  events.Time `json:"since,omitzero"`  // when it was created
	gone   bool        // in a layer: it was deleted
}

// file returns the entry at path. The root always exists.
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

// putFile sets the entry at path. A new entry is counted in its directory.
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

// setFile sets an entry without counting it. In a layer, an entry with gone set hides the entry of
// the state below.
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

// path checks the syntax of a file's path, and that its directory exists.
func (r preconditions) path(e *events.Event, path string) error {
	clean, err := events.FilePath(path)
	if err != nil {
		return err
	}
	parent, _ := events.SplitPath(clean)
	dir, _ := r.state.file(parent)
	return firstFault(
		ofAggregate(e),
		unless(path == clean && path != events.FileRoot, "%.80q is no path, which would be %.80q", path, clean),
		unless(dir.Dir, "there is no directory %.80q", parent),
	)
}

func (r preconditions) FileWritten(e *events.Event, d events.FileWritten) error {
	was, there := r.state.file(d.Path)
	since := int64(0)
	if there {
		since = int64(was.Since)
	}
	return firstFault(
		r.path(e, d.Path),
		unless(!was.Dir, "%.80q is a directory", d.Path),
		unless(d.Since == since, "what it writes over is from %d, and not from %d", since, d.Since),
		unless((d.Digest == "") == (d.External != "") || d.Digest != "", "it has neither content nor a place outside"),
	)
}

func (r preconditions) FileDeleted(e *events.Event, d events.FileDeleted) error {
	was, there := r.state.file(d.Path)
	return firstFault(r.path(e, d.Path), unless(there && !was.Dir, "there is no file %.80q", d.Path))
}

func (r preconditions) DirectoryCreated(e *events.Event, d events.DirectoryCreated) error {
	_, there := r.state.file(d.Path)
	return firstFault(r.path(e, d.Path), unless(!there, "%.80q is there already", d.Path))
}

func (r preconditions) DirectoryRemoved(e *events.Event, d events.DirectoryRemoved) error {
	was, there := r.state.file(d.Path)
	return firstFault(
		r.path(e, d.Path),
		unless(there && was.Dir, "there is no directory %.80q", d.Path),
		unless(was.Held == 0, "directory %.80q holds %d entries", d.Path, was.Held),
	)
}
