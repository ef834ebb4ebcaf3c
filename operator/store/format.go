package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/streams"
)

// usable returns an *[UnfinishedError] if a restore into the store did not end, and a
// *[format.NewerError] if a newer Skein has stored the log. Of an encrypted store the server has to
// say that.
func (c Config) usable() error {
	if err := Restored(c.Dir); err != nil {
		return err
	}
	list, err := places(c.Dir)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.stream != c.Log {
			continue
		}
		if err := p.format(c.Dir); err != nil {
			return err
		}
	}
	return nil
}

// format checks what a stream's metadata says. Whether the file is damaged is for others to say.
func (p place) format(dir string) error {
	if _, err := os.Stat(filepath.Join(p.dir, metaKeyFile)); err == nil {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(p.dir, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return &DeniedError{Dir: dir, Cause: err}
	}
	if err != nil {
		return err
	}
	var meta struct {
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(raw, &meta) != nil {
		return nil
	}
	return streams.CheckFormat(fmt.Sprintf("the store %s", dir), meta.Metadata)
}
