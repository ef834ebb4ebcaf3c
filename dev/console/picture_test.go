package console_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/skein-threads/skein/cmd/skein/operator"
)

// pictureBytes is the size of the largest picture of the README.
const pictureBytes = 150_000

// The pictures of the README show conversations of skein demo --serve, and are small. make pictures
// puts them into docs/images.
func TestBrowser_Pictures(t *testing.T) {
	chromium(t)
	folder := cmp.Or(os.Getenv("SKEIN_PICTURES"), t.TempDir())
	w := newWorld(t, "")
	if err := operator.FillDemo(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	b := w.open(scheme("light"))
	for _, picture := range []struct {
		name, path, shows string
		height            int64
	}{
		{"conversation", "/threads/key:order:42:refund", "waits for you", 1240},
		{"run", "/threads/key:order:42:refund/run", "approval of refund", 640},
	} {
		b.do(chromedp.EmulateViewport(1280, picture.height))
		b.visit(picture.path)
		b.sees(picture.shows)
		b.live()
		var png []byte
		b.do(chromedp.CaptureScreenshot(&png))
		if len(png) > pictureBytes {
			t.Errorf("%s has %d bytes, want at most %d", picture.name, len(png), pictureBytes)
		}
		if err := os.WriteFile(filepath.Join(folder, "console-"+picture.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
