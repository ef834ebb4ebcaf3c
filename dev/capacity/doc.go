// Package capacity is the arithmetic of docs/scale.md: what one cell does, from costs that were
// measured, and how full the fullest of many cells is when tenants differ as much as they do. A test
// holds the page's tables to it.
//
// It is a model. It shares no code with what it describes.
package capacity
