package events

// The events of a thread's files.
const (
	FileWrittenType      Type = "file.written"
	FileDeletedType      Type = "file.deleted"
	DirectoryCreatedType Type = "directory.created"
	DirectoryRemovedType Type = "directory.removed"
)

// FileWritten records that a path has new content, which is in the object store under its
// digest.
type FileWritten struct {
	Path     string `json:"path" schema:"required,maxLength=4096" doc:"The path in the thread, from its root."`
	MimeType string `json:"mimeType" schema:"required,maxLength=256" doc:"What it holds."`
	Size     int64  `json:"size" schema:"required,minimum=0" doc:"Bytes."`
	Digest   string `json:"digest,omitzero" schema:"maxLength=128" doc:"SHA-256 of the content, in hex; absent for an external file."`
	External string `json:"external,omitzero" schema:"maxLength=4096" doc:"Where an external file lies."`
	Width    int64  `json:"width,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	Height   int64  `json:"height,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	Metadata JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Since    int64  `json:"createdAt,omitzero" schema:"minimum=0" doc:"When the file that it writes over was made, in microseconds; absent if the path held none."`
}

// FileDeleted records that a file was deleted.
type FileDeleted struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"The path in the thread, from its root."`
}

// DirectoryCreated records that a directory was created.
type DirectoryCreated struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"The path in the thread, from its root."`
}

// DirectoryRemoved records that an empty directory was removed.
type DirectoryRemoved struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"The path in the thread, from its root."`
}

type fileRules interface {
	FileWritten(e *Event, d FileWritten) error
	FileDeleted(e *Event, d FileDeleted) error
	DirectoryCreated(e *Event, d DirectoryCreated) error
	DirectoryRemoved(e *Event, d DirectoryRemoved) error
}

func fileEvents() []Row {
	return []Row{
		row(FileWrittenType, 1, "A file was written.",
			FileWritten{Path: "/invoices/42.pdf", MimeType: "application/pdf", Size: 18231, Digest: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"}, Rules.FileWritten),
		row(FileDeletedType, 1, "A file was deleted.", FileDeleted{Path: "/invoices/42.pdf"}, Rules.FileDeleted),
		row(DirectoryCreatedType, 1, "A directory was created.", DirectoryCreated{Path: "/invoices"}, Rules.DirectoryCreated),
		row(DirectoryRemovedType, 1, "A directory was removed.", DirectoryRemoved{Path: "/invoices"}, Rules.DirectoryRemoved),
	}
}

// WriteFileOptions holds the optional arguments of a file write.
type WriteFileOptions struct {
	Width, Height  int64   // in pixels; by default those of the image itself
	Metadata       JSON    // an object
	ExpectedDigest *string // digest of the content that the path must hold, else version_conflict; empty: the path must not exist
	CommandID      string  // makes a repeat safe; default: a new one
	Actor          string  // default: that of the client
}
