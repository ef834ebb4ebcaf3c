package events

// WriteFileOptions holds the optional arguments of a file write.
type WriteFileOptions struct {
	Width, Height  int64   // in pixels; by default those of the image itself
	Metadata       JSON    // an object
	ExpectedDigest *string // digest of the content that the path must hold, else version_conflict; empty: the path must not exist
	CommandID      string  // makes a repeat safe; default: a new one
	Actor          string  // default: that of the client
}
