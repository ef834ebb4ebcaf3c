package runtime

import (
	"container/list"
	"context"
	"sync"

	"github.com/skein-threads/skein/eventlog"
)

// history keeps the conversations that were used last, so that the next turn of
// a thread reads only what is new. Whoever takes one has it alone.
type history struct {
	log  *eventlog.Log
	most int // bytes

	mu    sync.Mutex
	bytes int
	order *list.List // of *kept, the one used last in front
	byKey map[string]*list.Element
}

type kept struct {
	key  string
	talk *conversation
	size int
}

func newHistory(log *eventlog.Log, most int) *history {
	return &history{log: log, most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// take gives the conversation of a thread as the log has it now.
func (h *history) take(ctx context.Context, tenant, thread string) (*conversation, error) {
	c := h.remove(tenant + "." + thread)
	if c == nil {
		c = newConversation()
	}
	return c, h.follow(ctx, c, tenant, thread)
}

// follow reads what the log has after what is known.
func (h *history) follow(ctx context.Context, c *conversation, tenant, thread string) error {
	for commit, err := range h.log.Thread(ctx, tenant, thread, c.seq+1) {
		if err != nil {
			return err
		}
		if !c.apply(commit) { // erased, or behind what is known: from the start
			*c = *newConversation()
			c.version = commit.Version - int64(len(commit.Events))
			c.apply(commit)
		}
	}
	return nil
}

// give puts a conversation back.
func (h *history) give(tenant, thread string, c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := &kept{key: tenant + "." + thread, talk: c, size: c.bytes + 1024}
	if k.size > h.most/4 {
		return
	}
	if old := h.byKey[k.key]; old != nil {
		h.drop(old)
	}
	h.byKey[k.key] = h.order.PushFront(k)
	h.bytes += k.size
	for h.bytes > h.most {
		h.drop(h.order.Back())
	}
}

func (h *history) remove(key string) *conversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byKey[key]
	if e == nil {
		return nil
	}
	h.drop(e)
	return e.Value.(*kept).talk
}

func (h *history) drop(e *list.Element) {
	k := h.order.Remove(e).(*kept)
	delete(h.byKey, k.key)
	h.bytes -= k.size
}
