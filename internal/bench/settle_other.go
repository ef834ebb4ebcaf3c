//go:build !unix

package bench

// settle does nothing where a program cannot ask for it.
func settle() {}
