package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The tests run where the examples are, as their readers do.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..", "examples")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
