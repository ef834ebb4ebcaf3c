package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

func TestHolds_Files(t *testing.T) {
	k := begun(t)
	k.do(stored("/d/f", "x"))
	k.do(events.CreateDirectory{Path: "/e"})
	f, _ := k.state.file("/d/f")
	digest := digestOf("y")
	path := func(p string) func(*events.FileWritten) { return func(d *events.FileWritten) { d.Path = p } }
	holdsBut(t, k, k.after(events.FileWrittenType, threadID, "", events.FileWritten{Path: "/d/g", Digest: digest}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("a path that is not clean", "is no path", path("/d//g")),
		the("the root", "is no path", path("/")),
		the("a path that goes back", "..", path("/d/../g")),
		the("no directory to stand in", "there is no directory", path("/x/g")),
		the("a file to stand in", "there is no directory", path("/d/f/g")),
		the("a directory", "is a directory", path("/e")),
		the("an age of its own", "not from 7", func(d *events.FileWritten) { d.Since = 7 }),
		the("the age of what it writes over left out", "what it writes over", path("/d/f")),
		the("neither content nor a place", "neither content", func(d *events.FileWritten) { d.Digest = "" }))
	holdsBut(t, k, k.after(events.FileWrittenType, threadID, "", events.FileWritten{Path: "/d/f", External: "s3://x", Since: int64(f.Since)}),
		the("another age", "what it writes over", func(d *events.FileWritten) { d.Since++ }))
	holdsBut(t, k, k.after(events.FileDeletedType, threadID, "", events.FileDeleted{Path: "/d/f"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("a directory", "there is no file", func(d *events.FileDeleted) { d.Path = "/e" }),
		the("nothing", "there is no file", func(d *events.FileDeleted) { d.Path = "/d/g" }))
	holdsBut(t, k, k.after(events.DirectoryCreatedType, threadID, "", events.DirectoryCreated{Path: "/d/h"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("what is there", "is there already", func(d *events.DirectoryCreated) { d.Path = "/e" }),
		the("a path in nothing", "there is no directory", func(d *events.DirectoryCreated) { d.Path = "/x/y" }))
	holdsBut(t, k, k.after(events.DirectoryRemovedType, threadID, "", events.DirectoryRemoved{Path: "/e"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("a file", "there is no directory", func(d *events.DirectoryRemoved) { d.Path = "/d/f" }),
		the("nothing", "there is no directory", func(d *events.DirectoryRemoved) { d.Path = "/x" }),
		the("a full one", "holds 1 entries", func(d *events.DirectoryRemoved) { d.Path = "/d" }))
}
