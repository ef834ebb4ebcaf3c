package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// history is what a fork copies of a thread, folded from its commits. The states of threads
// have no contents.
type history struct {
	upTo    int64  // the version after which events do not count; 0: all do
	seq     uint64 // of the last commit that was folded
	made    events.ThreadCreated
	base    string // the default context
	content []byte // of the default context
	of      string // its type
	items   map[string]*events.Item
	files   map[string]any // events.FileWritten or events.DirectoryCreated, by path
	bytes   int            // of the items' contents
}

func newHistory(upTo int64) *history {
	return &history{upTo: upTo, items: map[string]*events.Item{}, files: map[string]any{}}
}

// apply folds the next commit.
func (h *history) apply(c *events.Commit) {
	h.seq = c.Seq
	for i := range c.Events {
		if e := &c.Events[i]; h.upTo == 0 || e.Version <= h.upTo {
			h.fold(e)
		}
	}
}

func (h *history) fold(e *events.Event) {
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
		item := d.Item(e.ThreadID, e.Time)
		h.items[d.ID] = &item
		h.bytes += len(d.Content)
	case events.MessageEdited:
		if item := h.items[e.Subject]; item != nil {
			h.bytes -= len(item.Content)
			item.Edit(d)
			h.bytes += len(item.Content)
		}
	case events.MessageDeleted:
		h.hide(e.Subject)
	case events.HistoryTruncated:
		for id, item := range h.items {
			if item.Index >= d.FromIndex {
				h.hide(id)
			}
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

func (h *history) hide(id string) {
	if item := h.items[id]; item != nil {
		h.bytes -= len(item.Content)
		delete(h.items, id)
	}
}

// copied returns what a fork copies: the items before the message after the chosen one, or all.
func (h *history) copied(d events.ForkThread) (*thread.Copied, error) {
	list := make([]*events.Item, 0, len(h.items))
	for _, item := range h.items {
		list = append(list, item)
	}
	slices.SortFunc(list, func(a, b *events.Item) int { return cmp.Compare(a.Index, b.Index) })
	var shown []int // places in list of the messages that a messageIndex counts
	for i, item := range list {
		if events.ShowsAlone(item.Type, item.CallOf != nil) && item.Depth == 0 && !item.Silent {
			shown = append(shown, i)
		}
	}
	point, err := forkPoint(d, list, shown)
	if err != nil {
		return nil, err
	}
	c := &thread.Copied{
		Title: h.made.Title, AgentID: h.made.AgentID, UserID: h.made.UserID, Env: h.made.Env, Context: h.content, ContextType: h.of,
	}
	end := len(list)
	if point >= 0 {
		index := int64(point)
		c.Point, c.PointItem = &index, list[shown[point]].ID
		if point+1 < len(shown) {
			end = shown[point+1]
		}
	}
	c.Items = list[:end]
	paths := make([]string, 0, len(h.files))
	for path := range h.files {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { // a directory before what it holds
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	for _, path := range paths {
		c.Files = append(c.Files, h.files[path])
	}
	return c, fits(list, c.Items, shown)
}

// forkPoint returns which of the shown messages is the last that is copied; -1: there is none.
func forkPoint(d events.ForkThread, list []*events.Item, shown []int) (int, error) {
	last := len(shown) - 1
	switch {
	case d.Version != nil:
		return last, nil
	case d.ItemID != "":
		for n, place := range shown {
			if list[place].ID == d.ItemID {
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

// maxForkBytes bounds the contents that a fork copies into its first commit.
const maxForkBytes = 512 << 10

// fits refuses a history that is too long to be copied, and says how much of it is not.
func fits(list, items []*events.Item, shown []int) error {
	size, most := 0, -1
	for n, item := range items {
		size += len(item.Content) + len(item.Metadata)
		if next, ok := slices.BinarySearch(shown, n+1); size <= maxForkBytes && next > 0 && (ok || n+1 == len(list)) {
			most = next - 1
		}
	}
	if size <= maxForkBytes {
		return nil
	}
	e := events.TooLarge("the history to copy", int64(size), maxForkBytes)
	if most < 0 {
		e.Message += "; its first message alone is longer"
	} else {
		e.Message += fmt.Sprintf("; fork at messageIndex %d or before", most)
	}
	return e
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}
