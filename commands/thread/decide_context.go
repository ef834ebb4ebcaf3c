package thread

import (
	"github.com/skein-threads/skein/events"
)

func (m *decider) createContext(d events.CreateContext) error {
	if d.Key != "" {
		if _, taken := m.state.contextByKey(d.Key); taken {
			return events.Taken("context key", d.Key)
		}
		if err := checkKey(d.Key); err != nil {
			return err
		}
	}
	id := m.id(d.ID, events.ContextPrefix)
	if _, taken := m.state.context(id); taken {
		return events.Taken("context", id)
	}
	if err := m.checkType(d.Type, "/content", d.Content); err != nil {
		return err
	}
	m.emitContext(id, d.Key, d.Type, d.Content)
	return nil
}

// checkType checks a context's content against its type. path is where the content is in the
// command. Without a type any content is valid.
func (m *decider) checkType(name, path string, content events.JSON) error {
	if name == "" {
		return nil
	}
	check := m.command.Types[name]
	if check == nil {
		return events.Invalid("", "there is no definition of the context %s; apply one, which has its JSON Schema", name)
	}
	if err := check(orNull(content)); err != nil {
		return events.Invalid(path, "the content does not fit the context %s: %w", name, err)
	}
	return nil
}

func (m *decider) emitContext(id, key, name string, content events.JSON) {
	created := events.ContextCreated{ID: id, Status: events.ContextMachine().Initial(), Type: name, Content: orNull(content)}
	if key != "" {
		created.Key = &key
	}
	m.emit(events.ContextCreatedType, id, "", created)
}

func (m *decider) resolveContext(d events.ResolveContext) error {
	id, created := m.state.Default, false
	resolved := events.ContextResolved{}
	if d.Key != "" {
		resolved.Key = &d.Key
		var found bool
		if id, found = m.state.contextByKey(d.Key); !found {
			if err := checkKey(d.Key); err != nil {
				return err
			}
			id, created = m.id("", events.ContextPrefix), true
			m.emitContext(id, d.Key, "", nil)
		}
	}
	resolved.Created = created
	m.emit(events.ContextResolvedType, id, "", resolved)
	return nil
}

// contextOf returns the named context, or the default one. It finds contexts of this thread
// only.
func (m *decider) contextOf(id string) (string, contextState, error) {
	if id == "" {
		id = m.state.Default
	}
	c, ok := m.state.context(id)
	if !ok {
		return "", c, events.Missing("context", id)
	}
	return id, c, nil
}

// writable is contextOf, except that it refuses a closed context: the content of one is final.
func (m *decider) writable(id string) (string, contextState, error) {
	id, c, err := m.contextOf(id)
	if err == nil {
		err = notALife(id, c)
	}
	if err != nil || c.Status != events.ContextClosed {
		return id, c, err
	}
	e := events.Errorf(events.IllegalTransition,
		"context %s is closed, which is final, and takes no more writes; name another contextId, or create one with context.create: the key is free", id)
	e.Details = &events.ErrorDetails{Entity: "context", ID: id, From: string(c.Status), Allowed: []string{}}
	return "", c, e
}

func (m *decider) setContextStatus(d events.SetContextStatus) error {
	id, c, err := m.contextOf(d.ContextID)
	if err == nil {
		err = notALife(id, c)
	}
	if err != nil {
		return err
	}
	if err := events.ContextMachine().Check(id, c.Status, d.To); err != nil {
		return err
	}
	m.emit(events.ContextStatusChangedType, id, "", events.ContextStatusChanged{From: c.Status, To: d.To})
	return nil
}

func (m *decider) setContext(d events.SetContext) error {
	id, c, err := m.writable(d.ContextID)
	if err != nil {
		return err
	}
	after := []byte(d.Content)
	if d.Patch != nil {
		if after, err = events.MergePatch(c.Content, d.Patch); err != nil {
			return events.Invalid("/patch", "the patch cannot be applied: %w", err)
		}
	}
	if len(after) > events.MaxStateBytes {
		return events.TooLarge("the context's content", int64(len(after)), events.MaxStateBytes)
	}
	path := "/content"
	if d.Patch != nil {
		path = "/patch"
	}
	if err := m.checkType(c.Type, path, after); err != nil {
		return err
	}
	m.emit(events.StateChangedType, id, "", events.StateChanged{Content: d.Content, Patch: d.Patch})
	return nil
}

func orNull(v events.JSON) events.JSON {
	if v == nil {
		return events.JSON("null")
	}
	return v
}
