// Package attachment moves large contents of messages into files of their thread.
//
// An item, a result and an answer are each an event, which has at most 512 KiB. A picture that is
// larger is a file of the thread, /attachments/SHA-256.png, and its part refers to it:
//
//	{"type":"input_image","image_url":"skein:/attachments/3f0c....png"}
//
// [Extract] finds the contents of what is too large in data URLs, and replaces them;
// [Rewrite] replaces references by what a reader needs: the content again, for a model, or a URL.
// Neither does I/O: callers bring functions that store and read. [Keep] and [Load] are these
// functions for the files of a thread.
package attachment
