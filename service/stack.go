package service

// stackRoom is how much room GrowStack makes: about as much as deciding a commit needs.
const stackRoom = 24 << 10

// GrowStack makes room for 24 KiB of calls on the caller's stack, at once.
//
// A goroutine begins with a small stack. Each time it is doubled in the middle of a deep call all
// frames are copied; for a goroutine that handles one request and ends, that was a twentieth of
// the processor time of a commit. Room that is not used again is taken back by the garbage
// collector, as that of any goroutine.
func GrowStack() { stackFrame(-1) }

// stackFrame has a frame so large that calling it makes the stack grow. With -1 nothing of the frame
// is cleared.
//
//go:noinline
func stackFrame(at int) byte {
	if at < 0 {
		return 0
	}
	var room [stackRoom]byte
	room[at%stackRoom] = 1
	return room[at/2%stackRoom]
}
