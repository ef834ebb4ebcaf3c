package commands

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Bounds of the pages of histories.
const (
	// minPageBytes and maxPageBytes bound a page. A fork in the middle of a page stores that
	// page's items again, and reading one item reads its whole page. The first pages are short;
	// after every doublePages pages the size doubles.
	minPageBytes = 128 << 10
	maxPageBytes = 1 << 20
	doublePages  = 64
	// maxPages bounds the pages of a history, because one event names them all.
	maxPages = 2000
	// maxForkBytes bounds what a fork copies into its first commit. A longer history is inherited
	// as pages.
	maxForkBytes = 512 << 10
	// pagesAtOnce is how many pages are read or stored at the same time.
	pagesAtOnce = 8
)

// pageBytes bounds the page of a history that comes after n others.
func pageBytes(n int) int {
	return min(minPageBytes<<min(n/doublePages, 8), maxPageBytes)
}

// seal moves the oldest items to a page once there are more than a fork copies.
func (h *history) seal() error {
	if h.bytes <= maxForkBytes+pageBytes(len(h.pages)) {
		return nil
	}
	if len(h.pages) >= maxPages {
		return events.Errorf(events.PayloadTooLarge, "the history to copy has more than %d pages; fork at an earlier version", maxPages)
	}
	most := int64(len(h.places))
	if h.kept > 0 { // the page must end before the place reserved for an item to come
		most = min(most, h.kept-1)
	}
	if most <= h.first {
		return nil
	}
	page, end, err := h.page(len(h.pages), h.first, most)
	if err != nil {
		return err
	}
	h.pages = append(h.pages, page)
	for ; h.first < end; h.first++ {
		if item := h.items[h.first]; item != nil {
			h.bytes -= sizeOf(item)
			delete(h.items, h.first)
		}
	}
	return nil
}

// page makes page n, of the items from the place from on, and returns the place where it ends. The
// same items always yield the same pages.
func (h *history) page(n int, from, end int64) (events.HistoryPart, int64, error) {
	var items []events.InheritedItem
	size := 0
	end = min(end, (from/events.HistoryBlock+1)*events.HistoryBlock)
	at := from
	for ; at < end; at++ {
		item := h.items[at]
		if item == nil {
			continue
		}
		if size += sizeOf(item); size > pageBytes(n) && len(items) > 0 {
			break
		}
		items = append(items, *item)
	}
	part, err := h.keep(from, items)
	return part, at, err
}

// keep encodes a page and adds it to the pages to store.
func (h *history) keep(from int64, items []events.InheritedItem) (events.HistoryPart, error) {
	content, digest, err := events.EncodeHistoryPage(items)
	if err != nil {
		return events.HistoryPart{}, err
	}
	h.fresh[digest] = content
	part := events.HistoryPart{Digest: digest, Size: int64(len(content)), From: from}
	for i := range items {
		part.Count(&items[i])
	}
	return part, nil
}

// inherit adds the items of the pages that the thread has inherited.
func (h *history) inherit(pages iter.Seq2[*events.HistoryPage, error]) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		for i := range page.Items {
			h.note(&page.Items[i])
		}
	}
	for int64(len(h.places)) < h.first {
		h.places = append(h.places, place{})
	}
	h.unread = nil
	return nil
}

// pageOf returns the index of the page that contains a place.
func (h *history) pageOf(at int64) int {
	n, found := slices.BinarySearchFunc(h.pages, at, func(p events.HistoryPart, at int64) int { return cmp.Compare(p.From, at) })
	if !found {
		n--
	}
	return n
}

// pageEnd returns the place where a page ends.
func (h *history) pageEnd(n int) int64 {
	if n+1 < len(h.pages) {
		return h.pages[n+1].From
	}
	return h.first
}

// settle applies the pending edits to the pages that they belong to. read returns these pages.
func (h *history) settle(read func(...events.HistoryPart) ([]*events.HistoryPage, error)) error {
	slices.SortStableFunc(h.edits, func(a, b pageEdit) int { return cmp.Compare(a.place, b.place) })
	for len(h.edits) > 0 {
		n := h.pageOf(h.edits[0].place)
		pages, err := read(h.pages[n])
		if err != nil {
			return err
		}
		items := slices.Clone(pages[0].Items) // the cached page is shared with other readers
		for len(h.edits) > 0 && h.pageOf(h.edits[0].place) == n {
			e := h.edits[0]
			h.edits = h.edits[1:]
			i := slices.IndexFunc(items, func(i events.InheritedItem) bool { return i.Index == e.place })
			switch {
			case i < 0:
			case e.call > 0:
				items[i].Calls = append(slices.Clip(items[i].Calls), e.call)
			case e.edit == nil:
				items = slices.Delete(items, i, i+1)
			default:
				change(&items[i], *e.edit)
			}
		}
		if h.pages[n], err = h.keep(h.pages[n].From, items); err != nil {
			return err
		}
	}
	h.edits = nil
	return nil
}

// take adds to c the items before a place: the items themselves if they are small, otherwise their
// pages.
func (h *history) take(c *thread.Copied, end int64, read func(...events.HistoryPart) ([]*events.HistoryPage, error)) error {
	whole := h.pages // the pages that end at or before the place
	for len(whole) > 0 && h.pageEnd(len(whole)-1) > end {
		whole = whole[:len(whole)-1]
	}
	var rest []events.InheritedItem // the items of the page that contains the place
	from := h.first
	if len(whole) < len(h.pages) {
		from = h.pages[len(whole)].From
	}
	if from < h.first && from < end {
		pages, err := read(h.pages[len(whole)])
		if err != nil {
			return err
		}
		for _, item := range pages[0].Items {
			if item.Index < end {
				rest = append(rest, item)
			}
		}
	}
	size := 0
	next, last := int32(0), events.Time(0)
	for _, p := range h.places[:end] {
		size += int(p.bytes)
		next = max(next, p.number)
		if p.bits&(isItem|isNested|isSilent|isUser) == isItem|isUser {
			last = max(last, p.at)
		}
	}
	if size <= maxForkBytes {
		pages, err := read(whole...)
		if err != nil {
			return err
		}
		for _, page := range pages {
			c.Items = append(c.Items, page.Items...)
		}
		c.Items = append(c.Items, rest...)
		for at := h.first; at < end; at++ {
			if item := h.items[at]; item != nil {
				c.Items = append(c.Items, *item)
			}
		}
		return nil
	}
	parts := slices.Clone(whole)
	if len(rest) > 0 {
		part, err := h.keep(from, rest)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	for at := h.first; at < end; {
		part, next, err := h.page(len(parts), at, end)
		if err != nil {
			return err
		}
		parts, at = append(parts, part), next
	}
	if len(parts) > maxPages {
		return events.Errorf(events.PayloadTooLarge, "the history to copy has %d pages, and %d are allowed; fork at an earlier message", len(parts), maxPages)
	}
	c.Inherited = &events.HistoryInherited{
		ThreadID: h.thread, Version: h.version, Pages: parts, NextMessageID: int64(next), UserLastInteractedAt: int64(last) / 1000,
		NextIndex: (end + events.HistoryAlign - 1) / events.HistoryAlign * events.HistoryAlign,
	}
	return nil
}

// readPages reads pages of a history, in their order.
func (d *Dispatcher) readPages(ctx context.Context, tenant string, parts []events.HistoryPart) ([]*events.HistoryPage, error) {
	pages := make([]*events.HistoryPage, len(parts))
	return pages, atOnce(len(parts), func(i int) error {
		var err error
		pages[i], err = d.pages.Page(ctx, tenant, parts[i].Digest)
		return err
	})
}

// storePages stores the new pages of a history, and reports whether all its other pages are still
// stored. The collector keeps a page for a while, until an event names it.
func (d *Dispatcher) storePages(ctx context.Context, h *history, named bool) (all bool, err error) {
	if len(h.fresh) > 0 && d.cfg.Contents == nil {
		return false, events.Errorf(events.Unavailable, "this process stores no pages of histories")
	}
	fresh := make([]string, 0, len(h.fresh))
	for digest := range h.fresh {
		fresh = append(fresh, digest)
	}
	err = atOnce(len(fresh), func(i int) error {
		return d.cfg.Contents.KeepPage(ctx, h.tenant, h.thread, h.fresh[fresh[i]])
	})
	if err != nil {
		return false, err // the error leaves all new pages to be stored again
	}
	if !named {
		clear(h.fresh)
		return true, nil
	}
	var gone atomic.Bool
	err = atOnce(len(h.pages), func(i int) error {
		if _, made := h.fresh[h.pages[i].Digest]; made {
			return nil
		}
		has, err := d.cfg.Contents.Hold(ctx, h.tenant, h.pages[i].Digest)
		if !has {
			gone.Store(true)
		}
		return err
	})
	clear(h.fresh)
	return !gone.Load(), err
}

// atOnce calls f for 0 to n-1, a few at the same time, and returns the first error.
func atOnce(n int, f func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(pagesAtOnce)
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}
