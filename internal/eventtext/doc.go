// Package eventtext says in a few words, for people, what an event or an item is: on a terminal
// and on a page. What it returns of a text has no character that could control a terminal.
package eventtext
