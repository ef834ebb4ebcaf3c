package commands

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// history is what a fork copies from a thread, folded from the thread's commits because thread
// states have no contents. In a long history the older items are in pages, and memory only holds
// what is needed to find a message. history does no I/O: its owner stores and reads the pages, see
// pages.go.
type history struct {
	historyOf
	broken bool // a commit was folded only in part

	seq     uint64 // of the last commit that was folded
	version int64  // of the last event that counted
	made    events.ThreadCreated
	base    string         // the default context
	content []byte         // of the default context
	of      string         // its type
	files   map[string]any // events.FileWritten or events.DirectoryCreated, by path

	places []place                         // by place, for every item that ever existed
	ids    []string                        // by place; "" if there never was an item, or if it was inherited
	byID   map[string]int64                // places of the items that were not inherited
	items  map[int64]*events.InheritedItem // the visible items from the place first on
	next   int64                           // the number of the next message
	bytes  int                             // of items
	first  int64                           // the first place that is not in a page
	pages  []events.HistoryPart
	edits  []pageEdit               // of items in pages, in order
	kept   int64                    // the place reserved for an item to come, plus one; 0: none is reserved
	open   map[openCall]events.JSON // the parts of calls without a result
	fresh  map[string][]byte        // pages that are not stored yet, by digest
	unread *events.HistoryInherited // its pages must be passed to inherit before the next commit is folded
}

// place holds what is known of an item without its content.
type place struct {
	at     events.Time // of creation
	bytes  int32
	number int32 // of a message, from 1
	bits   placeBits
}

type placeBits uint8

const (
	isItem   placeBits = 1 << iota // there is an item, and it is not hidden
	isAlone                        // shown as a message of its own
	isNested                       // within another item's conversation
	isSilent
	isUser // a message of a user
)

// inView reports whether a messageIndex counts the item.
func (p place) inView() bool { return p.bits&(isItem|isAlone|isNested|isSilent) == isItem|isAlone }

// pageEdit changes an item in a page, or hides it.
type pageEdit struct {
	place int64
	edit  *events.MessageEdited // nil: it is hidden, or
	call  int64                 // the place of a call that belongs to it
}

func newHistory(of historyOf) *history {
	return &history{
		historyOf: of, files: map[string]any{}, byID: map[string]int64{},
		items: map[int64]*events.InheritedItem{}, open: map[openCall]events.JSON{}, fresh: map[string][]byte{},
	}
}

// done reports whether all events that count were folded.
func (h *history) done() bool { return h.upTo > 0 && h.version >= h.upTo }

// apply folds the next commit.
func (h *history) apply(c *events.Commit) error {
	h.seq = c.Seq
	for i := range c.Events {
		if e := &c.Events[i]; h.upTo == 0 || e.Version <= h.upTo {
			h.version = e.Version
			if err := h.fold(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *history) fold(e *events.Event) error {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		h.made = d
	case events.ProfileChanged:
		set(&h.made.Title, d.Title)
		set(&h.made.UserID, d.UserID)
		if d.Env != nil {
			h.made.Env = d.Env
		}
	case events.AgentAssigned:
		h.made.AgentID = d.AgentID
	case events.ContextCreated:
		if d.Default {
			h.base, h.content, h.of = d.ID, d.Content, d.Type
		}
	case events.StateChanged:
		h.state(e.Subject, d)
	case events.ItemCreated:
		h.add(d, e.Time)
		return h.seal()
	case events.StepCreated:
		if h.kept = 0; d.Place != nil {
			h.kept = *d.Place + 1
		}
	case events.HistoryInherited:
		h.pages, h.first, h.unread = slices.Clone(d.Pages), d.NextIndex, &d
	case events.MessageEdited:
		h.edit(e.Subject, d)
		for _, p := range d.Parts {
			h.noteCall(e.Subject, p.Place, p.Part)
		}
	case events.MessageDeleted:
		if at, ok := h.placeOf(e.Subject); ok {
			h.hide(at)
		}
	case events.HistoryTruncated:
		for at := max(d.FromIndex, 0); at < int64(len(h.places)); at++ {
			h.hide(at)
		}
	case events.FileWritten:
		h.files[d.Path] = d
	case events.DirectoryCreated:
		h.files[d.Path] = d
	case events.FileDeleted:
		delete(h.files, d.Path)
	case events.DirectoryRemoved:
		delete(h.files, d.Path)
	}
	return nil
}

// state folds a change of the default context's content.
func (h *history) state(context string, d events.StateChanged) {
	if context != h.base {
		return
	}
	if d.Patch == nil {
		h.content = d.Content
	} else if merged, err := events.MergePatch(h.content, d.Patch); err == nil {
		h.content = merged
	}
}

// add folds item.created.
func (h *history) add(d events.ItemCreated, now events.Time) {
	if d.Index < h.first || d.Index < int64(len(h.ids)) && h.ids[d.Index] != "" { // the log is damaged
		return
	}
	if h.kept == d.Index+1 {
		h.kept = 0
	}
	if d.Type == events.Message && d.Role == events.Assistant {
		h.noteCalls(d)
	}
	made := d.Item(h.thread, now)
	item := &events.InheritedItem{
		Index: d.Index, ID: d.ID, Type: d.Type, Role: d.Role, Channel: d.Channel, Content: d.Content, CreatedAt: made.CreatedAtMicros,
		Depth: d.Depth, Silent: d.Silent, Metadata: d.Metadata, CallOf: d.CallOf,
	}
	if d.Type == events.Message {
		if item.MessageID = d.MessageID; item.MessageID == nil { // of an older log
			item.MessageID = new(h.next)
		}
	}
	if at, ok := h.placeOf(d.ParentItemID); ok {
		item.Parent = &at
	}
	if d.CallOf != nil {
		h.call(*d.CallOf, d.Index)
	}
	h.byID[d.ID] = d.Index
	for int64(len(h.ids)) <= d.Index {
		h.ids = append(h.ids, "")
	}
	h.ids[d.Index] = d.ID
	h.items[d.Index] = item
	h.bytes += sizeOf(item)
	h.note(item)
}

// call records that a message has a call.
func (h *history) call(message, call int64) {
	if item := h.items[message]; item != nil {
		item.Calls = append(item.Calls, call)
	} else if message < h.first {
		h.edits = append(h.edits, pageEdit{place: message, call: call})
	}
}

// note sets the place of an item.
func (h *history) note(i *events.InheritedItem) {
	for int64(len(h.places)) <= i.Index {
		h.places = append(h.places, place{})
	}
	p := place{at: events.Time(i.CreatedAt), bytes: int32(sizeOf(i)), bits: isItem}
	if events.ShowsAlone(i.Type, i.CallOf != nil) {
		p.bits |= isAlone
	}
	if i.Depth != 0 {
		p.bits |= isNested
	}
	if i.Silent {
		p.bits |= isSilent
	}
	if i.Type == events.Message && i.Role == events.User {
		p.bits |= isUser
	}
	if i.MessageID != nil {
		p.number = int32(*i.MessageID) + 1
		h.next = max(h.next, *i.MessageID+1)
	}
	h.places[i.Index] = p
}

// itemOverhead is about how many bytes an item takes in a commit or a page, besides its contents.
const itemOverhead = 300

func sizeOf(i *events.InheritedItem) int { return len(i.Content) + len(i.Metadata) + itemOverhead }

// placeOf returns the place of an item.
func (h *history) placeOf(id string) (int64, bool) {
	if at, ok := h.byID[id]; ok {
		return at, true
	}
	at, ok := events.InheritedPlace(h.tenant, h.thread, id)
	return at, ok && at < int64(len(h.places))
}

// idAt returns the id of the item at a place.
func (h *history) idAt(at int64) string {
	if at < int64(len(h.ids)) && h.ids[at] != "" {
		return h.ids[at]
	}
	return events.InheritedItemID(h.tenant, h.thread, at)
}

func (h *history) edit(id string, d events.MessageEdited) {
	at, ok := h.placeOf(id)
	if !ok || h.places[at].bits&isItem == 0 {
		return
	}
	if item := h.items[at]; item != nil {
		h.bytes -= sizeOf(item)
		change(item, d)
		h.bytes += sizeOf(item)
		h.note(item)
		return
	}
	h.edits = append(h.edits, pageEdit{place: at, edit: &d})
	p := &h.places[at]
	if d.Silent != nil {
		if p.bits &^= isSilent; *d.Silent {
			p.bits |= isSilent
		}
	}
	if d.Content != nil {
		p.bytes = int32(len(d.Content) + itemOverhead)
	}
}

// change applies message.edited to an item.
func change(i *events.InheritedItem, d events.MessageEdited) {
	item := events.Item{Type: i.Type, Content: i.Content, Metadata: i.Metadata, Silent: i.Silent}
	item.Edit(d)
	i.Content, i.Metadata, i.Silent = item.Content, item.Metadata, item.Silent
}

func (h *history) hide(at int64) {
	if h.places[at].bits&isItem == 0 {
		return
	}
	h.places[at] = place{}
	if item := h.items[at]; item != nil {
		h.bytes -= sizeOf(item)
		delete(h.items, at)
	} else {
		h.edits = append(h.edits, pageEdit{place: at})
	}
}

// copied returns what a fork copies except the items, and the place before which it copies the
// items.
func (h *history) copied(d events.ForkThread) (*thread.Copied, int64, error) {
	var shown []int64 // places of the messages that a messageIndex counts
	for at := range h.places {
		if h.places[at].inView() {
			shown = append(shown, int64(at))
		}
	}
	point, err := forkPoint(h, d, shown)
	if err != nil {
		return nil, 0, err
	}
	c := &thread.Copied{
		Title: h.made.Title, AgentID: h.made.AgentID, UserID: h.made.UserID, Env: h.made.Env, Context: h.content, ContextType: h.of, Files: h.paths(),
	}
	end := int64(len(h.places))
	if point >= 0 {
		c.Point, c.PointItem = new(int64(point)), h.idAt(shown[point])
		if point+1 < len(shown) {
			end = shown[point+1]
		}
	}
	return c, end, nil
}

// forkPoint returns the index in shown of the last message to copy; -1: none is copied.
func forkPoint(h *history, d events.ForkThread, shown []int64) (int, error) {
	last := len(shown) - 1
	switch {
	case d.Version != nil:
		return last, nil
	case d.ItemID != "":
		if at, ok := h.placeOf(d.ItemID); ok {
			if n, ok := slices.BinarySearch(shown, at); ok {
				return n, nil
			}
		}
		return 0, events.Invalid("/itemId", "the thread has no message %s that is shown", d.ItemID)
	case last < 0:
		return 0, events.Invalid("/messageIndex", "the thread has no messages, and so none at %d", *d.MessageIndex)
	case *d.MessageIndex < 0 || *d.MessageIndex > int64(last):
		return 0, events.Invalid("/messageIndex", "the thread has no message at %d; they are counted from 0 to %d", *d.MessageIndex, last)
	}
	return int(*d.MessageIndex), nil
}

// paths returns the records of the files, a directory before what it holds.
func (h *history) paths() []any {
	paths := make([]string, 0, len(h.files))
	for path := range h.files {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	var files []any
	for _, path := range paths {
		files = append(files, h.files[path])
	}
	return files
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}
