package compact

import (
	"math/bits"
	"unsafe"
)

// Room estimates the size of a Go map of so many entries, without the text of string keys. A
// small map has room for eight, a larger one for the next power of two, until it consists of
// several tables of a thousand each.
func Room[K, V any](entries int) int64 {
	const header, control = 48, 1
	slot := int64(unsafe.Sizeof(*new(K)) + unsafe.Sizeof(*new(V)) + control)
	switch {
	case entries == 0:
		return 0
	case entries <= 8:
		return header + 8*slot
	case entries <= 896: // seven eighths of 1,024
		return header + slot<<bits.Len(uint((entries*8-1)/7))
	}
	return header + slot*int64(entries)*3/2
}

// TextSize is the allocated size of a string.
func TextSize(s string) int64 { return int64(len(s)+15) &^ 15 }
