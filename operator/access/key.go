package access

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/keys"
)

// AddKey adds an API key, and returns it with its text, which is stored nowhere.
func (f *Folder) AddKey(k keys.Key) (made keys.Key, text string, err error) {
	err = f.change(func() error {
		list, err := keys.Read(f.dir)
		if err != nil {
			return err
		}
		if made, text, err = keys.New(k, f.now()); err != nil {
			return &BadUserError{err.Error()}
		}
		return f.saveKeys(append(list, made))
	})
	return made, text, err
}

// Key returns an API key, also one that was revoked.
func (f *Folder) Key(id string) (keys.Key, error) {
	list, err := keys.Read(f.dir)
	if err != nil {
		return keys.Key{}, err
	}
	i := slices.IndexFunc(list, func(k keys.Key) bool { return k.ID == id })
	if i < 0 {
		return keys.Key{}, &NoKeyError{ID: id}
	}
	return list[i], nil
}

// RevokeKey revokes an API key. Running servers notice within a second.
func (f *Folder) RevokeKey(id string) error {
	return f.change(func() error {
		list, err := keys.Read(f.dir)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(k keys.Key) bool { return k.ID == id && k.Revoked == nil })
		if i < 0 {
			return &NoKeyError{ID: id}
		}
		now := f.now().UTC().Truncate(time.Second)
		list[i].Revoked = &now
		return f.saveKeys(list)
	})
}

// Keys lists the API keys, oldest first, and when each was last used, by id.
func (f *Folder) Keys() ([]keys.Key, map[string]time.Time, error) {
	list, err := keys.Read(f.dir)
	if err != nil {
		return nil, nil, err
	}
	used, err := keys.Used(f.dir)
	return list, used, err
}

func (f *Folder) saveKeys(list []keys.Key) error {
	body, err := json.Marshal(list, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return writeFile(f.path(keys.File), append(body, '\n'))
}
