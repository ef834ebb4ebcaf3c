package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"

	"golang.org/x/image/draw"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Bounds of an image for a thumbnail, checked before it is decoded.
const (
	MaxImagePixels = 16_000_000 // at most 250 MB while it is decoded, one at a time
	MaxImageBytes  = 64 << 20
)

// Viewer reads contents for queries. It implements query.Contents.
type Viewer struct {
	store    *Store
	images   *quota.Pool // for decoding
	searches *quota.Pool
}

// Defaults of how many images are decoded, and searches run, at the same time in a process.
const (
	DefaultImages   = 1
	DefaultSearches = 4
)

// NewViewer returns a viewer of a store. The pools bound how many images are decoded and how many
// searches run at a time; nil: the defaults.
func NewViewer(s *Store, images, searches *quota.Pool) *Viewer {
	if images == nil {
		images = quota.NewPool("images", quota.Places{Total: DefaultImages}, nil)
	}
	if searches == nil {
		searches = quota.NewPool("searches", quota.Places{Total: DefaultSearches}, nil)
	}
	return &Viewer{store: s, images: images, searches: searches}
}

// Thumbnail returns a small picture of a PNG, JPEG, GIF or WebP: of the first frame of an
// animation, as JPEG if the image cannot be transparent and as PNG otherwise. It is never
// larger than the image. Any other content is not_found, and so is an image of more than
// MaxImagePixels.
func (v *Viewer) Thumbnail(ctx context.Context, tenant string, file *events.FileRecord, size int) (*events.Thumbnail, error) {
	missing := events.Missing("thumbnail", file.Path)
	if file.Size > MaxImageBytes {
		return nil, missing
	}
	leave, err := place(ctx, v.images, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	var raw bytes.Buffer
	for piece, err := range v.store.All(ctx, tenant, file.Digest) {
		if err != nil {
			return nil, refusal(err)
		}
		if raw.Len() == 0 && !strings.HasPrefix(detectType(piece).MimeType, "image/") {
			return nil, missing
		}
		raw.Write(piece)
	}
	small, err := shrink(raw.Bytes(), size)
	if err != nil {
		missing.Message = "no thumbnail of " + file.Path + ": " + err.Error()
		return nil, missing
	}
	return small, nil
}

// place waits until the tenant gets a place in a pool.
func place(ctx context.Context, pool *quota.Pool, tenant string) (leave func(), err error) {
	leave, err = pool.Wait(ctx, tenant)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		return nil, events.Errorf(events.Unavailable, "%s", full)
	}
	return leave, err
}

// errImage is the error of an image that is too large to decode.
var errImage = errors.New("too many pixels; at most 16,000,000 are decoded")

// shrink returns an image scaled down to at most size pixels in width and height.
func shrink(raw []byte, size int) (*events.Thumbnail, error) {
	config, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("decode image: %w", err)
	}
	if config.Width < 1 || config.Height < 1 || int64(config.Width)*int64(config.Height) > MaxImagePixels {
		return nil, errImage
	}
	source, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	width, height := fit(source.Bounds().Dx(), source.Bounds().Dy(), size)
	target := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.ApproxBiLinear.Scale(target, target.Bounds(), source, source.Bounds(), draw.Src, nil)
	var out bytes.Buffer
	mime := "image/png"
	if opaque, ok := source.(interface{ Opaque() bool }); ok && opaque.Opaque() {
		mime = "image/jpeg"
		err = jpeg.Encode(&out, target, &jpeg.Options{Quality: 85})
	} else {
		err = png.Encode(&out, target)
	}
	if err != nil {
		return nil, fmt.Errorf("encode thumbnail: %w", err)
	}
	return &events.Thumbnail{MimeType: mime, Width: int64(width), Height: int64(height), Data: base64.StdEncoding.EncodeToString(out.Bytes())}, nil
}

// fit returns the dimensions of the thumbnail. It keeps the aspect ratio, and never enlarges the
// image.
func fit(width, height, size int) (int, int) {
	longer := max(width, height)
	if longer <= size {
		return max(width, 1), max(height, 1)
	}
	return max(width*size/longer, 1), max(height*size/longer, 1)
}
