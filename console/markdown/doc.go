// Package markdown renders Markdown that nobody vouches for, such as what a model or a visitor
// wrote, as HTML that a page may contain.
//
// # What it promises
//
//   - The result has no element, attribute or address that the text chose, other than links to
//     http, https and mailto. HTML in the text is shown as text.
//   - Nothing is loaded: an image is a link to it.
//   - It needs no inline style and no script: code is colored by classes ([Stylesheet]).
//   - Characters that change the direction or the order of text are shown by their names.
//   - Time and size are bounded. Text that is too long is cut, and text whose rendering would
//     be too expensive is shown as it is.
package markdown
