package compact

import (
	"strings"
	"testing"
	"unsafe"
)

// A map has room for eight entries, then for the next power of two of which seven
// eighths suffice, and above a thousand for half as many again.
func TestRoom_OfMaps(t *testing.T) {
	if got := Room[string, [3]int64](0); got != 0 {
		t.Errorf("no entries take %d bytes", got)
	}
	slot := int64(unsafe.Sizeof("")+unsafe.Sizeof([3]int64{})) + 1
	places := int64(8)
	for n := 1; n <= 2000; n++ {
		if n > 8 && int64(n) > places*7/8 {
			places = max(16, places*2)
		}
		want := 48 + slot*places
		if n > 896 {
			want = 48 + slot*int64(n)*3/2
		}
		if got := Room[string, [3]int64](n); got != want {
			t.Fatalf("%d entries take %d bytes, want %d", n, got, want)
		}
	}
	for text, size := range map[string]int64{"": 0, "x": 16, strings.Repeat("x", 16): 16, strings.Repeat("x", 17): 32} {
		if got := TextSize(text); got != size {
			t.Errorf("a text of %d bytes takes %d", len(text), got)
		}
	}
}
