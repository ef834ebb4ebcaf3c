// Package demo fills a tenant with conversations worth looking at: agents that stream, call
// tools, wait for a person and fail, forks, files and effects. It needs no model: its reactors
// are functions.
package demo
