package events

// WriteFileOptions says more of a file that is written. The zero value
// says nothing.
type WriteFileOptions struct {
	Width, Height  int64   // pixels; else what an image says of itself
	Metadata       JSON    // an object
	ExpectedDigest *string // the content that the path must hold, else version_conflict; empty: it must hold nothing
	CommandID      string  // makes a repeat safe; default a new one
	Actor          string  // default that of the client
}
