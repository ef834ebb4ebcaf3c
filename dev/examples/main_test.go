package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// The tests run where the examples are, as their readers do.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join(repository.Root(), "examples")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
