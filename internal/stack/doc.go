// Package stack makes room on the stack of a goroutine before it is needed.
//
// A goroutine begins with a small stack. Each time it is doubled in the middle of a deep call all
// frames are copied; for a goroutine that handles one request and ends, that was a twentieth of
// the processor time of a commit. Room that is not used again is taken back by the garbage
// collector, as that of any goroutine.
package stack
