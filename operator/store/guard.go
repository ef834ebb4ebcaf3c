package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// makeGuard links the files of streams where the server does not look: it removes a
// stream that it cannot read, and a link stays. The last block of each is copied,
// since the server writes it in place.
func makeGuard(dir string, list []place) error {
	if err := removeGuard(dir); err != nil {
		return err
	}
	for _, p := range list {
		files, err := blockFiles(p)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, guardDir, p.account, p.stream)
		if err := os.MkdirAll(filepath.Join(to, messagesDir), 0o750); err != nil {
			return err
		}
		for i, f := range files {
			target := filepath.Join(to, messagesDir, filepath.Base(f.path))
			if i == len(files)-1 {
				err = copyFile(f.path, target)
			} else {
				err = linkFile(f.path, target)
			}
			if err != nil {
				return err
			}
		}
		for _, name := range []string{metaFile, metaSumFile, metaKeyFile} {
			if err := copyFile(filepath.Join(p.dir, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func removeGuard(dir string) error { return os.RemoveAll(filepath.Join(dir, guardDir)) }

// linkFile links a file, or copies it where the file system has no links.
func linkFile(from, to string) error {
	if err := os.Link(from, to); err == nil {
		return nil
	}
	return copyFile(from, to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
