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
	Path     string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
	MimeType string `json:"mimeType" schema:"required,maxLength=256" doc:"What it holds."`
	Size     int64  `json:"size" schema:"required,minimum=0" doc:"Bytes."`
	Digest   string `json:"digest,omitzero" schema:"maxLength=128" doc:"SHA-256 of the content, in hex; absent for an external file."`
	External string `json:"external,omitzero" schema:"maxLength=4096" doc:"Where an external file lies."`
	Width    int64  `json:"width,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	Height   int64  `json:"height,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	Metadata JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Since    int64  `json:"createdAt,omitzero" schema:"minimum=0" doc:"When the overwritten file, if any, was made, in microseconds."`
}

// FileDeleted records that a file was deleted.
type FileDeleted struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
}

// DirectoryCreated records that a directory was created.
type DirectoryCreated struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
}

// DirectoryRemoved records that an empty directory was removed.
type DirectoryRemoved struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
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

// WriteFile puts content at a path, in place of what the path held. Missing parent directories
// are created. The content is one of: content, an upload (which carries this command), or
// external, the address of a file stored elsewhere.
type WriteFile struct {
	Path           string  `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
	Content        *string `json:"content,omitzero" schema:"maxLength=349528" doc:"The content in base64, up to 256 KiB; larger contents need an upload."`
	External       string  `json:"external,omitzero" schema:"maxLength=4096" doc:"Where the content lies, if Skein does not store it: a URL, or a key of S3 or R2."`
	Size           *int64  `json:"size,omitzero" schema:"minimum=0" doc:"Bytes of an external file; otherwise it must match the content."`
	MimeType       string  `json:"mimeType,omitzero" schema:"maxLength=256" doc:"The media type; if absent, the first bytes decide."`
	Width          *int64  `json:"width,omitzero" schema:"minimum=0" doc:"Pixels, of an image; if absent, what the image says."`
	Height         *int64  `json:"height,omitzero" schema:"minimum=0" doc:"Pixels, of an image; if absent, what the image says."`
	Metadata       JSON    `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	ExpectedDigest *string `json:"expectedDigest,omitzero" schema:"maxLength=64" doc:"The digest that the path must have; empty: it must hold nothing."`

	// Stored names content that is already in the store. It never comes from a request: to
	// know a digest is no permission to read what it names.
	Stored *FileContent `json:"-"`
}

// DeleteFile deletes a file. Deleting a file that does not exist is not an error.
type DeleteFile struct {
	Path           string  `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
	ExpectedDigest *string `json:"expectedDigest,omitzero" schema:"maxLength=64" doc:"The digest that the path must have."`
}

// CreateDirectory creates a directory and its parents. One that exists is not an error.
type CreateDirectory struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
}

// RemoveDirectory removes an empty directory. One that does not exist is not an error.
type RemoveDirectory struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
}

func fileCommands() []Command {
	return []Command{
		command("file.write", "Writes a file; missing parent directories are created.",
			WriteFile{Path: "/notes/order.txt", Content: new("SXQgd2FzIHNoaXBwZWQgdG9kYXku"), MimeType: "text/plain"}, FileWrittenType, DirectoryCreatedType),
		command("file.delete", "Deletes a file. If there is none, nothing happens.",
			DeleteFile{Path: "/notes/order.txt"}, FileDeletedType),
		command("directory.create", "Creates a directory and its parents. If it exists, nothing happens.",
			CreateDirectory{Path: "/invoices/2026"}, DirectoryCreatedType),
		command("directory.remove", "Removes an empty directory. If there is none, nothing happens.",
			RemoveDirectory{Path: "/invoices/2026"}, DirectoryRemovedType),
	}
}

// Data of the queries of files.
type (
	// StatFile returns the record of a file or directory.
	StatFile struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Path     string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root."`
		At       *At    `json:"at,omitzero" doc:"As it was then."`
		Fresh
	}
	// ListFiles returns the contents of a directory.
	ListFiles struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Path     string `json:"path,omitzero" schema:"maxLength=4096" doc:"The directory; the root if absent."`
		Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; as many as one answer holds if absent."`
		Cursor   string `json:"cursor,omitzero" schema:"maxLength=6144" doc:"nextCursor of the page before."`
		At       *At    `json:"at,omitzero" doc:"As it was then."`
		Fresh
	}
	// CountFiles returns the counts of a thread's files.
	CountFiles struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		At       *At    `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// FindFiles returns the paths that match a glob.
	FindFiles struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Pattern  string `json:"pattern" schema:"required,maxLength=4096" doc:"A glob from the root: * and ? within a name, ** across directories, [a-z], {a,b}."`
		Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=10000" doc:"The largest number to return; 10,000 if absent."`
		At       *At    `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// GrepFiles returns the lines of a thread's files that match a pattern.
	GrepFiles struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Pattern  string `json:"pattern" schema:"required,maxLength=4096" doc:"A regular expression (RE2)."`
		Glob     string `json:"glob,omitzero" schema:"maxLength=4096" doc:"Only files whose path matches this glob."`
		Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=10000" doc:"The largest number of lines; 1,000 if absent."`
		At       *At    `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// GetThumbnail returns a small picture of an image.
	GetThumbnail struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Path     string `json:"path" schema:"required,maxLength=4096" doc:"The image: PNG, JPEG, GIF or WebP."`
		Size     *int64 `json:"size,omitzero" schema:"minimum=1,maximum=1024" doc:"Its longer side in pixels; 256 if absent."`
		At       *At    `json:"at,omitzero" doc:"As it was then."`
		Fresh
	}
)

func fileQueries() []Query {
	return []Query{
		query("file.stat", "The record of a file or directory.",
			StatFile{ThreadID: exampleThread, Path: "/invoices/42.pdf"}),
		query("file.list", "What a directory holds.", ListFiles{ThreadID: exampleThread, Path: "/invoices"}),
		query("file.stats", "How many files a thread has, and their bytes.", CountFiles{ThreadID: exampleThread}),
		query("file.find", "The paths that match a glob.", FindFiles{ThreadID: exampleThread, Pattern: "**/*.pdf"}),
		query("file.grep", "The lines of a thread's files that match a pattern.",
			GrepFiles{ThreadID: exampleThread, Pattern: `shipped|sent`, Glob: "/notes/**"}),
		query("file.thumbnail", "A thumbnail of an image.",
			GetThumbnail{ThreadID: exampleThread, Path: "/photos/parcel.jpg", Size: new(int64(128))}),
	}
}

// The document that answers each query, for [QueryFor].
func (StatFile) answer() (a FileRecord)    { return a }
func (ListFiles) answer() (a FileList)     { return a }
func (CountFiles) answer() (a FileStats)   { return a }
func (FindFiles) answer() (a FindList)     { return a }
func (GrepFiles) answer() (a GrepList)     { return a }
func (GetThumbnail) answer() (a Thumbnail) { return a }
