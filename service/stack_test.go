package service

import (
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
)

// descend uses about a kilobyte of stack for each level.
//
//go:noinline
func descend(levels int) byte {
	var room [1 << 10]byte
	room[levels] = byte(levels)
	if levels > 0 {
		room[0] = descend(levels - 1)
	}
	return room[levels/2]
}

// After GrowStack, calls that need as much stack as it made room for do not move what is on it.
func TestGrowStack_StackIsNotCopiedLater(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC() // none runs from here on: it may halve a stack
	moved := make(chan bool)
	go func() {
		GrowStack()
		var here byte
		before := uintptr(unsafe.Pointer(&here))
		descend(stackRoom>>10 - 4)
		moved <- before != uintptr(unsafe.Pointer(&here))
	}()
	if <-moved {
		t.Error("the stack was copied")
	}
}
