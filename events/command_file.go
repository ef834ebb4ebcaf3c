package events

// WriteFile puts content at a path, in place of what the path held. Missing parent directories
// are created. The content is one of: content, an upload (which carries this command), or
// external, the address of a file stored elsewhere.
type WriteFile struct {
	Path           string  `json:"path" schema:"required,maxLength=4096" doc:"The path, from the thread's root."`
	Content        *string `json:"content,omitzero" schema:"maxLength=349528" doc:"The content in base64, up to 256 KiB; larger contents need an upload."`
	External       string  `json:"external,omitzero" schema:"maxLength=4096" doc:"Where the content lies, if Skein does not store it: a URL, or a key of S3 or R2."`
	Size           *int64  `json:"size,omitzero" schema:"minimum=0" doc:"Bytes of an external file; otherwise it must match the content."`
	MimeType       string  `json:"mimeType,omitzero" schema:"maxLength=256" doc:"The media type; if absent, the first bytes decide."`
	Width          *int64  `json:"width,omitzero" schema:"minimum=0" doc:"Pixels, of an image; if absent, what the image says."`
	Height         *int64  `json:"height,omitzero" schema:"minimum=0" doc:"Pixels, of an image; if absent, what the image says."`
	Metadata       JSON    `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	ExpectedDigest *string `json:"expectedDigest,omitzero" schema:"maxLength=64" doc:"The digest of the content that the path must hold; empty: it must hold nothing."`

	// Stored names content that is already in the store. It never comes from a request: to
	// know a digest is no permission to read what it names.
	Stored *FileContent `json:"-"`
}

// DeleteFile deletes a file. Deleting a file that does not exist is not an error.
type DeleteFile struct {
	Path           string  `json:"path" schema:"required,maxLength=4096" doc:"The path, from the thread's root."`
	ExpectedDigest *string `json:"expectedDigest,omitzero" schema:"maxLength=64" doc:"The digest of the content that the path must hold."`
}

// CreateDirectory creates a directory and its parents. One that exists is not an error.
type CreateDirectory struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"The path, from the thread's root."`
}

// RemoveDirectory removes an empty directory. One that does not exist is not an error.
type RemoveDirectory struct {
	Path string `json:"path" schema:"required,maxLength=4096" doc:"The path, from the thread's root."`
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
