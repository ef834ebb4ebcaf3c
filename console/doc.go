// Package console is Skein's web console: what agents did, why, and what they wait for, in a
// browser at /console/. It is server-rendered: html/template, style sheets and one small
// script of ES modules, all in the binary.
//
// # What it promises
//
//   - It acts as the signed-in principal, by the client of its request, and can do nothing
//     that the principal may not.
//   - What a conversation contains is text, or Markdown without HTML of its own: it cannot
//     run, load or send anything.
//   - Every page can be read without JavaScript, has an address that can be sent, and names the
//     same as JSON and as a command.
//   - A page that is open shows what is committed, without being reloaded.
//
// # What it does not
//
// It holds nothing: what it shows is asked of Skein for each request. It has no rights of an
// operator.
//
// # How a page is added
//
// A page is a file here with its row, and a template in the folder templates; table lists the
// rows. Package page has what they share, and says how a row is written. A page's own styles
// are in pages.css of package page.
package console
