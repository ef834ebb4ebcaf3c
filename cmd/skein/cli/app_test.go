package cli

import (
	"bytes"
	"testing"
)

// skein --version tells the version, as skein version does in its first line.
func TestRoot_Version(t *testing.T) {
	t.Parallel()
	var out, problems bytes.Buffer
	a := &App{In: &bytes.Buffer{}, Out: &out, Err: &problems, Env: func(string) (string, bool) { return "", false }, IsTerminal: func(any) bool { return false }}
	if code := a.Execute(t.Context(), []string{"--version"}); code != 0 || out.String() != "skein "+Version()+"\n" {
		t.Errorf("%d: %q %s", code, out.String(), problems.String())
	}
}
