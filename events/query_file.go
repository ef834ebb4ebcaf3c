package events

// Data of the queries of files.
type (
	// StatFile returns the record of a file or directory.
	StatFile struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Path     string `json:"path" schema:"required,maxLength=4096" doc:"The path, from the thread's root."`
		At       *At    `json:"at,omitzero" doc:"As it was then."`
		Fresh
	}
	// ListFiles returns the contents of a directory.
	ListFiles struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Path     string `json:"path,omitzero" schema:"maxLength=4096" doc:"The directory; the root if absent."`
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
		query[FileRecord]("file.stat", "The record of a file or directory.",
			StatFile{ThreadID: exampleThread, Path: "/invoices/42.pdf"}),
		query[FileList]("file.list", "What a directory holds.", ListFiles{ThreadID: exampleThread, Path: "/invoices"}),
		query[FileStats]("file.stats", "How many files a thread has, and their bytes.", CountFiles{ThreadID: exampleThread}),
		query[FindList]("file.find", "The paths that match a glob.", FindFiles{ThreadID: exampleThread, Pattern: "**/*.pdf"}),
		query[GrepList]("file.grep", "The lines of a thread's files that match a pattern.",
			GrepFiles{ThreadID: exampleThread, Pattern: `shipped|sent`, Glob: "/notes/**"}),
		query[Thumbnail]("file.thumbnail", "A thumbnail of an image.",
			GetThumbnail{ThreadID: exampleThread, Path: "/photos/parcel.jpg", Size: new(int64(128))}),
	}
}
