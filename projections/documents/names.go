package documents

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// A list in another order than that of creation is in the index by what orders it, in a few documents
// of which each has those whose ids have the same hash: a reader reads all of them, and sorts what
// they have, before it reads the documents of one page.
const (
	nameShards   = 32 // of the names in a directory
	effectShards = 16 // of a thread's effects, of which it has 1,000 at most
)

// NamesIn returns the ids of the documents of the index that have the names in a directory.
func NamesIn(dir string) []string { return shards(namesPrefix(dir), nameShards) }

// EffectIDs returns the ids of the documents of the index that have a thread's effects.
func EffectIDs() []string { return shards(effectsPrefix, effectShards) }

const effectsPrefix = "effects-"

func namesPrefix(dir string) string { return "files-" + token(dir) + "-" }

func shards(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(i)
	}
	return ids
}

// shardOf returns the one of n documents that has an id.
func shardOf(prefix string, n uint32, id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return prefix + strconv.Itoa(int(h.Sum32()%n))
}

// namesOf returns the id of the document of the index that has the name of a path.
func namesOf(path string) (id, name string) {
	dir, name := events.SplitPath(path)
	return shardOf(namesPrefix(dir), nameShards, name), name
}

// named declares the event that creates a file or a directory, unless it is there.
func named[E any](t events.Type, path func(E) string) reaction {
	return puts(t, func(_ *change, d E) (string, bool) {
		id, _ := namesOf(path(d))
		return id, true
	}, func(c *change, doc *Page, d E) *Page {
		doc = c.orPage(doc)
		_, name := namesOf(path(d))
		at, there := slices.BinarySearch(doc.Names, name)
		if c.same = there; !there {
			doc.Names = slices.Insert(doc.Names, at, name)
		}
		return doc
	})
}

// unnamed declares the event that removes a file or a directory.
func unnamed[E any](t events.Type, path func(E) string) reaction {
	return keeps(t, func(_ *change, d E) (string, bool) {
		id, _ := namesOf(path(d))
		return id, true
	}, func(_ *change, doc *Page, d E) bool {
		_, name := namesOf(path(d))
		doc.Names = slices.DeleteFunc(doc.Names, func(n string) bool { return n == name })
		return len(doc.Names) > 0
	})
}

// nameReactions returns what keeps the names in directories.
func nameReactions() []reaction {
	return []reaction{
		named(events.FileWrittenType, func(d events.FileWritten) string { return d.Path }),
		named(events.DirectoryCreatedType, func(d events.DirectoryCreated) string { return d.Path }),
		unnamed(events.FileDeletedType, func(d events.FileDeleted) string { return d.Path }),
		unnamed(events.DirectoryRemovedType, func(d events.DirectoryRemoved) string { return d.Path }),
	}
}

// EffectEntry is what orders and selects an effect.
type EffectEntry struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Due      int64  `json:"due"`
	Repeated bool   `json:"repeated,omitzero"`
	Failed   bool   `json:"failed,omitzero"`
	Running  bool   `json:"running,omitzero"`
	Ending   bool   `json:"ending,omitzero"`
}

func effectEntry(e *events.ScheduledEffect) EffectEntry {
	return EffectEntry{e.ID, e.Name, e.ScheduledAt, e.Repeated(), e.ErrorText != "", e.Running, e.Ending}
}

// Effect returns the effect as far as the entry tells.
func (e *EffectEntry) Effect(thread string) *events.ScheduledEffect {
	out := &events.ScheduledEffect{ID: e.ID, ThreadID: thread, Name: e.Name, ScheduledAt: e.Due, Running: e.Running, Ending: e.Ending}
	if e.Repeated {
		out.EveryMs = 1
	}
	if e.Failed {
		out.ErrorText = "failed"
	}
	return out
}

// dueReactions returns what keeps a thread's effects in the index.
func dueReactions() []reaction {
	shard := func(c *change) string { return shardOf(effectsPrefix, effectShards, c.event.Subject) }
	return append([]reaction{
		puts(events.EffectScheduledType, func(c *change, _ events.EffectScheduled) (string, bool) { return shard(c), true },
			func(c *change, doc *Page, d events.EffectScheduled) *Page {
				doc = c.orPage(doc)
				doc.Effects = append(doc.Effects, effectEntry(effectOf(c, d)))
				return doc
			}),
	}, effectChanges(shard, func(c *change, doc *Page, fold func(*events.ScheduledEffect) bool) bool {
		for i := range doc.Effects {
			if doc.Effects[i].ID != c.event.Subject {
				continue
			}
			if e := doc.Effects[i].Effect(c.commit.Thread); fold(e) {
				doc.Effects[i] = effectEntry(e)
			} else {
				doc.Effects = slices.Delete(doc.Effects, i, i+1)
			}
			break
		}
		return len(doc.Effects) > 0
	})...)
}
