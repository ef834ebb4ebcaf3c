package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The user that Skein is in the image.
const (
	userID   = 10001
	userName = "skein"
)

// dataDir is the one folder of the image that Skein writes to: a volume.
const dataDir = "data"

// rootFiles are the files of the image besides the program and certificates, by path.
func rootFiles() map[string]string {
	return map[string]string{
		"etc/passwd":        fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\n%s:x:%d:%d:Skein:/%s:/sbin/nologin\n", userName, userID, userID, dataDir),
		"etc/group":         fmt.Sprintf("root:x:0:\n%s:x:%d:\n", userName, userID),
		"etc/nsswitch.conf": "hosts: files dns\n",
	}
}

// writeRoot lays the files of the image out in a folder: the program, the certificates of the
// authorities that this machine trusts, and a user. Only the folder data is that user's.
func writeRoot(program, dir string) error {
	body, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := put(dir, "skein", body, 0o755); err != nil {
		return err
	}
	authorities, err := certificates()
	if err != nil {
		return err
	}
	if err := put(dir, "etc/ssl/certs/ca-certificates.crt", authorities, 0o644); err != nil {
		return err
	}
	for path, text := range rootFiles() {
		if err := put(dir, path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, mode := range map[string]fs.FileMode{"tmp": 0o777 | fs.ModeSticky, dataDir: 0o700} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(full, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(full, mode); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil // the archive of the image says whose the folder is
	}
	return os.Chown(filepath.Join(dir, dataDir), userID, userID)
}

// certificates returns the certificates of the authorities that this machine trusts.
func certificates() ([]byte, error) {
	for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"} {
		if body, err := os.ReadFile(path); err == nil {
			return body, nil
		}
	}
	return nil, errors.New("this machine has no certificates of authorities; install ca-certificates")
}

func put(dir, path string, body []byte, mode fs.FileMode) error {
	full := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(full, body, mode); err != nil {
		return err
	}
	return os.Chmod(full, mode)
}
