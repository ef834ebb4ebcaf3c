package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The media types of an image: those of Docker, since only its configuration has a health check.
const (
	indexType    = "application/vnd.docker.distribution.manifest.list.v2+json"
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// descriptor names a blob of the image.
type descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int       `json:"size"`
	Platform  *platform `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// config is how the image is run.
type config struct {
	User         string              `json:"User"`
	Env          []string            `json:"Env"`
	Entrypoint   []string            `json:"Entrypoint"`
	Cmd          []string            `json:"Cmd"`
	WorkingDir   string              `json:"WorkingDir"`
	Volumes      map[string]struct{} `json:"Volumes"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts"`
	StopSignal   string              `json:"StopSignal"`
	Healthcheck  healthcheck         `json:"Healthcheck"`
	Labels       map[string]string   `json:"Labels"`
}

type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
}

// imageConfig is the configuration of the image. Without any of one's own, Skein makes a folder of
// keys in its volume, prints one key once, and listens on all addresses: each request needs a key.
// That no network but the container's is between it and what ends TLS, --http-plain says.
func imageConfig(version string) config {
	return config{
		User: fmt.Sprintf("%d:%d", userID, userID),
		Env: []string{
			"SKEIN_STORE=/data/store", "SKEIN_ACCESS=/data/access", "SKEIN_ACCESS_CREATE=default", "SKEIN_HTTP_PLAIN=true",
			"SKEIN_NATS_LISTEN=0.0.0.0:4222", "SKEIN_HTTP_LISTEN=0.0.0.0:8420", "SKEIN_OPS_LISTEN=0.0.0.0:8421",
		},
		Entrypoint: []string{"/skein"}, Cmd: []string{"serve"}, WorkingDir: "/" + dataDir, StopSignal: "SIGTERM",
		Volumes:      map[string]struct{}{"/" + dataDir: {}},
		ExposedPorts: map[string]struct{}{"4222/tcp": {}, "8420/tcp": {}, "8421/tcp": {}},
		Healthcheck: healthcheck{
			Test: []string{"CMD", "/skein", "health", "--http", "http://127.0.0.1:8421"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title": "skein", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/skein-threads/skein",
		},
	}
}

// writeImage writes the image of programs, by architecture, as an archive in the layout of OCI.
func writeImage(version, file string, programs map[string]string) error {
	blobs := map[string][]byte{}
	keep := func(mediaType string, body []byte) descriptor {
		sum := sha256.Sum256(body)
		name := hex.EncodeToString(sum[:])
		blobs["blobs/sha256/"+name] = body
		return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: len(body)}
	}
	list := index{SchemaVersion: 2, MediaType: indexType}
	for _, arch := range slices.Sorted(maps.Keys(programs)) {
		plain, err := layer(programs[arch])
		if err != nil {
			return err
		}
		packed, err := pack(plain)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		settings, err := json.Marshal(map[string]any{
			"architecture": arch, "os": "linux", "config": imageConfig(version),
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		})
		if err != nil {
			return err
		}
		body, err := json.Marshal(manifest{2, manifestType, keep(configType, settings), []descriptor{keep(layerType, packed)}})
		if err != nil {
			return err
		}
		d := keep(manifestType, body)
		d.Platform = &platform{arch, "linux"}
		list.Manifests = append(list.Manifests, d)
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	whole := keep(indexType, body)
	if body, err = json.Marshal(index{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []descriptor{whole}}); err != nil {
		return err
	}
	blobs["index.json"], blobs["oci-layout"] = body, []byte(`{"imageLayoutVersion":"1.0.0"}`)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		if err := add(w, tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg}, blobs[name]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// layer returns the archive of the files of the image. It is the same for the same program and
// certificates.
func layer(program string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "skein-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeRoot(program, dir); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		clean := tar.Header{Name: filepath.ToSlash(name), Mode: header.Mode, Typeflag: header.Typeflag}
		if name == dataDir {
			clean.Uid, clean.Gid = userID, userID
		}
		if entry.IsDir() {
			clean.Name += "/"
			return add(w, clean, nil)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return add(w, clean, body)
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// add adds a file or a folder to an archive, without a time.
func add(w *tar.Writer, header tar.Header, body []byte) error {
	header.Size, header.ModTime = int64(len(body)), time.Unix(0, 0)
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

func pack(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
