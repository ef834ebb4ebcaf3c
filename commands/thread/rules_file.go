package thread

import "github.com/skein-threads/skein/events"

// path checks a path of the thread's files, and that its directory exists.
func (r rules) path(e *events.Event, path string) error {
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

func (r rules) FileWritten(e *events.Event, d events.FileWritten) error {
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

func (r rules) FileDeleted(e *events.Event, d events.FileDeleted) error {
	was, there := r.state.file(d.Path)
	return firstFault(r.path(e, d.Path), unless(there && !was.Dir, "there is no file %.80q", d.Path))
}

func (r rules) DirectoryCreated(e *events.Event, d events.DirectoryCreated) error {
	_, there := r.state.file(d.Path)
	return firstFault(r.path(e, d.Path), unless(!there, "%.80q is there already", d.Path))
}

func (r rules) DirectoryRemoved(e *events.Event, d events.DirectoryRemoved) error {
	was, there := r.state.file(d.Path)
	return firstFault(
		r.path(e, d.Path),
		unless(there && was.Dir, "there is no directory %.80q", d.Path),
		unless(was.Held == 0, "directory %.80q holds %d entries", d.Path, was.Held),
	)
}
