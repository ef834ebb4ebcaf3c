package events

// Sizes of file contents, in bytes.
const (
	FileChunkBytes  = 128 << 10 // of a FileChunk
	FilePieceBytes  = 512 << 10 // of a message that carries content; four chunks
	InlineFileBytes = 256 << 10 // the largest content of file.write itself; more needs an upload

	DirectoryType = "inode/directory" // the mimeType of a directory
)

// ThreadFile is a file or a directory as Standard Agents defines its record, and as a thread state
// returns it. Times are microseconds since the Unix epoch. An external file's storage is its
// address.
type ThreadFile struct {
	Path        string `json:"path" schema:"required,maxLength=4096" doc:"From the thread's root, which is /."`
	Name        string `json:"name" schema:"required,maxLength=255" doc:"The last name of the path; empty for the root."`
	MimeType    string `json:"mimeType" schema:"required,maxLength=256" doc:"The media type; inode/directory for a directory."`
	Storage     string `json:"storage" schema:"required,maxLength=4096" doc:"Where the content is: sha256: and its digest, an external location, or directory."`
	Size        int64  `json:"size" schema:"required,minimum=0" doc:"Bytes."`
	IsDirectory bool   `json:"isDirectory" schema:"required" doc:"It is a directory."`
	Metadata    JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Width       int64  `json:"width,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	Height      int64  `json:"height,omitzero" schema:"minimum=0" doc:"Pixels, of an image."`
	CreatedAt   int64  `json:"createdAt,omitzero" schema:"minimum=0" doc:"The time of creation, in microseconds since 1970."`
	UpdatedAt   int64  `json:"updatedAt,omitzero" schema:"minimum=0" doc:"When it was last written, in microseconds since 1970."`
}

// FileRecord is the document of a file or a directory. Digest is the SHA-256 of the content in
// hex; a directory and an external file have none.
type FileRecord struct {
	ThreadFile
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	Digest   string `json:"digest,omitzero" schema:"maxLength=64" doc:"SHA-256 of the content, in hex."`
	External bool   `json:"external,omitzero" doc:"Its content lies elsewhere: see storage."`
	Stamp
}

// ThreadFileList lists a directory, as a thread state returns it.
type ThreadFileList struct {
	Entries []ThreadFile `json:"entries"` // by name
}

// Chunks returns the number of chunks of the file's content, at least 1.
func (f *FileRecord) Chunks() int64 {
	return max(1, (f.Size+FileChunkBytes-1)/FileChunkBytes)
}

// HasContent reports whether Skein stores the content.
func (f *FileRecord) HasContent() bool { return !f.IsDirectory && !f.External }

// Record returns the document of the file that the event wrote.
func (d FileWritten) Record(thread string, at Time) FileRecord {
	r := FileRecord{ThreadFile: ThreadFile{
		Path: d.Path, MimeType: d.MimeType, Storage: "sha256:" + d.Digest, Size: d.Size, Metadata: d.Metadata,
		Width: d.Width, Height: d.Height, CreatedAt: int64(at), UpdatedAt: int64(at),
	}, ThreadID: thread, Digest: d.Digest}
	_, r.Name = SplitPath(d.Path)
	if d.Since != 0 {
		r.CreatedAt = d.Since
	}
	if d.External != "" {
		r.External, r.Storage, r.Digest = true, d.External, ""
	}
	return r
}

// Record returns the document of the directory that the event created.
func (d DirectoryCreated) Record(thread string, at Time) FileRecord {
	_, name := SplitPath(d.Path)
	return FileRecord{ThreadFile: ThreadFile{
		Path: d.Path, Name: name, MimeType: DirectoryType, Storage: "directory", IsDirectory: true,
		CreatedAt: int64(at), UpdatedAt: int64(at),
	}, ThreadID: thread}
}

// FileContent describes stored content.
type FileContent struct {
	Digest   string // SHA-256, in hex
	Size     int64
	MimeType string // detected from its first bytes
	Width    int64  // of an image, else 0
	Height   int64
}

// The replies of the queries of files.
type (
	// FileList is the contents of a directory, by name.
	FileList struct {
		Entries    []FileRecord `json:"entries" schema:"required" doc:"Files and directories, by name."`
		NextCursor string       `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// FindList is a list of paths, in order.
	FindList struct {
		Paths     []string `json:"paths" schema:"required" doc:"The paths that match, in order."`
		Truncated bool     `json:"truncated,omitzero" doc:"There are more."`
	}
	// GrepResult is the matches in one file.
	GrepResult struct {
		Path    string      `json:"path" schema:"required,maxLength=4096" doc:"The file."`
		Matches []GrepMatch `json:"matches" schema:"required" doc:"The lines that match, in order."`
	}
	// GrepMatch is a line that matches.
	GrepMatch struct {
		Line    int64  `json:"line" schema:"required,minimum=1" doc:"Its number, from 1."`
		Content string `json:"content" schema:"required" doc:"The line; a long one is cut."`
	}
	// GrepList is the matches in a thread's files. Binary files and external files are not
	// searched.
	GrepList struct {
		Results   []GrepResult `json:"results" schema:"required" doc:"The files with matches, by path."`
		Files     int64        `json:"files" schema:"required,minimum=0" doc:"How many files were searched."`
		Bytes     int64        `json:"bytes" schema:"required,minimum=0" doc:"How many bytes were searched."`
		Truncated bool         `json:"truncated,omitzero" doc:"There is more."`
	}
	// FileStats counts a thread's files. The size of an external file is the one that was
	// declared.
	FileStats struct {
		FileCount      int64 `json:"fileCount" schema:"required,minimum=0" doc:"Files."`
		DirectoryCount int64 `json:"directoryCount" schema:"required,minimum=0" doc:"Directories, the root not counted."`
		TotalSize      int64 `json:"totalSize" schema:"required,minimum=0" doc:"Bytes of all files."`
	}
	// Thumbnail is a small picture of an image.
	Thumbnail struct {
		MimeType string `json:"mimeType" schema:"required,maxLength=256" doc:"image/jpeg or image/png."`
		Width    int64  `json:"width" schema:"required,minimum=1" doc:"Pixels."`
		Height   int64  `json:"height" schema:"required,minimum=1" doc:"Pixels."`
		Data     string `json:"data" schema:"required" doc:"The image, in base64."`
	}
)

// FileChunk is a piece of a file's content. Its data is not reused for another chunk.
type FileChunk struct {
	Data        []byte
	Index       int64 // from 0
	TotalChunks int64
	IsLast      bool
}
