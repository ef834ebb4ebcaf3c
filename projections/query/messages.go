package query

import (
	"cmp"
	"strconv"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// messagesMost is how many messages one answer holds.
const messagesMost = 1000

// getMessage returns a message, or nil if the thread has none with that id. A missing thread is an
// error.
func getMessage(a *asking, d events.GetMessage) (*events.ThreadMessage, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	if !events.ValidID(d.MessageID) {
		_, err := a.ofThread(d.ThreadID)
		return nil, err
	}
	got, err := a.source.get(a.ctx, a.place(documents.Items, d.MessageID))
	if err != nil {
		return nil, err
	}
	item, ok := got[0].doc.(*events.Item)
	if !ok || !item.IsMessage() {
		_, err := a.ofThread(d.ThreadID)
		return nil, err
	}
	r := messageReader{asking: a, version: maxVersion, pages: map[int64]*documents.Page{}}
	calls, err := r.callsOf(item)
	if err != nil {
		return nil, err
	}
	list := &events.MessageList{}
	if _, err := r.read(list, []pick{{item.Index, item.ID, calls}}); err != nil || len(list.Messages) == 0 {
		return nil, err
	}
	return &list.Messages[0], nil
}

// maxVersion is later than any version of a thread.
const maxVersion = int64(1) << 62

// listMessages skips blocks of messages by the counts in the thread's document, then pages of the
// index, and reads the messages of one page. The work does not grow with the thread.
func listMessages(a *asking, d events.ListMessages) (*events.MessageList, error) {
	if d.Cursor != "" && d.Offset != nil && *d.Offset > 0 {
		return nil, events.Invalid("/offset", "a cursor replaces an offset; give one of them")
	}
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.threadOfIndex(d.ThreadID)
	switch {
	case err != nil:
		return nil, err
	case thread.CreatedAtMicros == 0: // a document of an older version, which counts no messages
		return nil, a.behind("the read models are being rebuilt")
	}
	filter := documents.MessageFilter{Silent: d.IncludeSilent, MaxDepth: -1, Context: d.ContextID, Default: thread.ContextID}
	if d.MaxDepth != nil {
		filter.MaxDepth = *d.MaxDepth
	}
	w := walk{
		asking: a, version: thread.Version, desc: d.Order != "asc", end: thread.NextItem, match: filter.Match,
		pages: map[int64]*documents.Page{},
	}
	counts, total, err := w.counts(thread.MessageBlocks, filter)
	if err != nil {
		return nil, err
	}
	w.empty = func(block int64) bool { return block >= int64(len(counts)) || counts[block] == 0 }
	list := &events.MessageList{Messages: []events.ThreadMessage{}, Total: total}
	query := mark("message.list", a.name(), d.ContextID, strconv.FormatBool(d.IncludeSilent), strconv.FormatInt(filter.MaxDepth, 10), cmp.Or(string(d.Order), "desc"))
	switch {
	case d.Cursor != "":
		at, err := decodeCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		w.next = int64(at)
	case d.Offset != nil:
		w.skipTo(counts, *d.Offset)
	default:
		w.skipTo(counts, 0)
	}
	most := min(limit(d.Limit, messagesMost), messagesMost)
	picked, err := w.pick(most+1, most)
	if err != nil {
		return nil, err
	}
	more := int64(-1)
	if len(picked) > most {
		more, picked = picked[most].index, picked[:most]
	}
	r := messageReader{asking: a, version: thread.Version, pages: w.pages}
	cut, err := r.read(list, picked)
	if err != nil {
		return nil, err
	}
	if cut >= 0 {
		more = cut
	}
	if more >= 0 {
		list.HasMore, list.NextCursor = true, encodeCursor(query, uint64(more))
	}
	return list, nil
}

// threadOfIndex returns a thread's document once the index is as new as the document.
func (a *asking) threadOfIndex(ref string) (*events.Thread, error) {
	thread, err := a.ofThread(ref)
	if err != nil {
		return nil, err
	}
	// The other buckets must have the messages that the thread's document counts.
	if seq := thread.Seq; !a.past && a.cfg.Progress.Seq() < uint64(seq) {
		if err := a.awaitSeq(&seq, false); err != nil {
			return nil, err
		}
	}
	return thread, nil
}

// counts returns how many messages match in each block, and in total. A block is searched if its
// counts do not suffice.
func (w *walk) counts(blocks [][]int64, filter documents.MessageFilter) ([]int64, int64, error) {
	counts, total := make([]int64, len(blocks)), int64(0)
	for n, block := range blocks {
		count, exact := filter.Count(block)
		if !exact && count > 0 {
			const perBlock = documents.BlockSize / documents.PageSize
			pages, err := w.read(int64(n)*perBlock, int64(n+1)*perBlock-1)
			if err != nil {
				return nil, 0, err
			}
			count = 0
			for _, p := range pages {
				for i := 0; p != nil && i < len(p.Entries); i++ {
					if e := &p.Entries[i]; e.ShownAt(w.version+1) && w.match(p, e) {
						count++
					}
				}
			}
		}
		counts[n] = count
		total += count
	}
	return counts, total, nil
}

// skipTo moves the walk to the block with the message at an offset.
func (w *walk) skipTo(counts []int64, offset int64) {
	w.next, w.skip = w.end, offset
	if w.desc {
		w.next = -1
	}
	for i := range counts {
		n := int64(i)
		if w.desc {
			n = int64(len(counts)) - 1 - n
		}
		if w.skip >= counts[n] {
			w.skip -= counts[n]
			continue
		}
		w.next = n * documents.BlockSize
		if w.desc {
			w.next = min(w.next+documents.BlockSize, w.end) - 1
		}
		return
	}
}
