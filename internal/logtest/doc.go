// Package logtest opens logs on real servers, and writes commits to them, for the
// tests of what stands on the log.
package logtest
