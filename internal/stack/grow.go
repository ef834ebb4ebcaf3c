package stack

// size is how much room Grow makes: about as much as deciding a commit needs.
const size = 24 << 10

// Grow makes room for 24 KiB of calls on the caller's stack, at once.
func Grow() { room(-1) }

// room has a frame so large that calling it makes the stack grow. With -1 nothing of the frame
// is cleared.
//
//go:noinline
func room(at int) byte {
	if at < 0 {
		return 0
	}
	var room [size]byte
	room[at%size] = 1
	return room[at/2%size]
}
