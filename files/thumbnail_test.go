package files

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"runtime"
	"testing"
)

// bomb is a PNG that says it has many pixels.
func bomb(width, height uint32) []byte {
	head := make([]byte, 17)
	copy(head, "IHDR")
	binary.BigEndian.PutUint32(head[4:], width)
	binary.BigEndian.PutUint32(head[8:], height)
	head[12], head[13] = 8, 6
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

// An image is measured before it is decoded: one that says it has too many pixels
// costs nothing. SA-122.
func TestBombsAreNotDecoded(t *testing.T) {
	for i, raw := range [][]byte{
		bomb(60_000, 60_000), bomb(MaxImagePixels+1, 1),
		[]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff"), bomb(1<<31-1, 1<<31-1), bomb(0, 10), []byte("no image"), nil,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if small, err := shrink(raw, 64); err == nil {
			t.Errorf("%.20q became %d x %d", raw, small.Width, small.Height)
		} else if i < 3 && !errors.Is(err, errImage) { // the decoder was asked
			t.Errorf("%.20q: %v", raw, err)
		}
		runtime.ReadMemStats(&after)
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 8<<20 {
			t.Errorf("%.20q cost %d bytes", raw, cost)
		}
	}
}

// WebP is read too, lossy and lossless; transparent pictures stay so. SA-122.
func TestShrink(t *testing.T) {
	for name, text := range map[string]string{
		"lossy":    "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
		"lossless": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
	} {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if c := detectType(raw); c.MimeType != "image/webp" || c.Width != 1 || c.Height != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		if small, err := shrink(raw, 64); err != nil || small.Width != 1 || small.Height != 1 {
			t.Errorf("%s: %+v %v", name, small, err)
		}
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 10, 400))
	clear.Set(5, 200, color.NRGBA{255, 0, 0, 100})
	var raw bytes.Buffer
	if err := png.Encode(&raw, clear); err != nil {
		t.Fatal(err)
	}
	small, err := shrink(raw.Bytes(), 100)
	if err != nil || small.MimeType != "image/png" || small.Width != 2 || small.Height != 100 {
		t.Errorf("%+v %v", small, err)
	}
	for _, c := range [][4]int{{100, 50, 100, 50}, {50, 50, 50, 50}, {1000, 1, 100, 1}, {1, 1000, 1, 100}} {
		if w, h := fit(c[0], c[1], 100); w != c[2] || h != c[3] {
			t.Errorf("%v: %d x %d", c, w, h)
		}
	}
}
